#include "octet/comm/combine.hpp"

#include "octet/comm/combine.kernels.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::comm {

void combine(Reduction reduction, std::span<const void* const> in, const Tensor& to) {
  check(!in.empty(), "combine: there are no inputs");
  dispatch<float, Bf16, double, std::int32_t, std::int64_t>(to.dtype, "combine", []<class T>() {});
  OCTET_RUN(combine, reduction, in.data(), std::int64_t(in.size()), to);
}

void combine([[maybe_unused]] cuda::Queue queue, std::span<const void* const> in, const Tensor& to) {
  check(!in.empty() && in.size() <= most_combined, "combine: {} inputs, wanted 1 to {}", in.size(), most_combined);
  dispatch<float, Bf16>(to.dtype, "combine", []<class T>() {});
  OCTET_RUN_CUDA(combine_sums, queue, in.data(), int(in.size()), to);
}

}  // namespace octet::comm
