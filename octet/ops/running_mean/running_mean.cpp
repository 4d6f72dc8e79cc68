#include "octet/ops/running_mean/running_mean.hpp"

#include "octet/ops/running_mean/running_mean.kernels.hpp"

namespace octet::ops {

void running_mean(Stream& stream, const Tensor& x, float share, const Tensor& mean) {
  check(x.shape == mean.shape && mean.dtype == DType::f32 && (x.dtype == DType::f32 || x.dtype == DType::bf16),
        "running_mean: mean must be f32 and x f32 or bf16, of one shape, got {} {} and {} {}", mean.dtype, mean.shape, x.dtype, x.shape);
  stream.count({.ops = 1, .bytes = 2.0 * double(mean.bytes()) + double(x.bytes())});
  OCTET_LAUNCH(stream, running_mean, x, share, mean);
}

}  // namespace octet::ops
