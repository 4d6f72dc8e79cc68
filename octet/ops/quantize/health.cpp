#include "octet/ops/quantize/health.hpp"

#include "octet/ops/quantize/quantize.kernels.hpp"

namespace octet::ops {

void count_nonfinite(Stream& stream, const QuantizeHealth* table, std::int64_t n, const Tensor& total) {
  check(total.dtype == DType::i64 && total.count() == 1, "count_nonfinite: total must be i64 [1], got {} {}", total.dtype, total.shape);
  stream.count({.ops = 1, .bytes = double(n) * sizeof(QuantizeHealth)});
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(count_nonfinite, stream.queue(), table, n, total.as<std::int64_t>());
  if (stream.device() != Device::cpu) return;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += table[i].nonfinite;
  *total.as<std::int64_t>() = sum;
}

}  // namespace octet::ops
