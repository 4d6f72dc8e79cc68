#include "octet/base/error.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.kernels.hpp"

namespace octet::cuda {

void grouped_gemm(Queue, const ops::GroupedGemm&) { throw DeviceError("grouped_gemm: no kernel for GPUs yet"); }

}  // namespace octet::cuda
