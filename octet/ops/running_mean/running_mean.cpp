#include "octet/ops/running_mean/running_mean.hpp"

#include "octet/ops/running_mean/running_mean.kernels.hpp"

namespace octet::ops {

void running_mean(Stream& stream, const Stored& x, float share, const Tensor& mean) {
  check(x.shape() == mean.shape && mean.dtype == DType::f32 && !scales_blocks(x.storage),
        "running_mean: mean must be f32 and x f32, bf16, f16 or e4m3_tensor, of one shape, got {} {} and {} {}", mean.dtype, mean.shape,
        x.storage, x.shape());
  stream.count({.ops = 1, .bytes = 2.0 * double(mean.bytes()) + double(x.bytes())});
  OCTET_LAUNCH(stream, running_mean, x.codes, x.tensor_descale(), share, mean);
}

void running_mean(Stream& stream, const Tensor& x, float share, const Tensor& mean) { running_mean(stream, Stored::plain(x), share, mean); }

}  // namespace octet::ops
