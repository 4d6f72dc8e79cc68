#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"

namespace octet::cuda {

void grouped_gemm(Queue queue, const ops::GroupedGemm& g) { plain_grouped_gemm(queue, g); }

}  // namespace octet::cuda
