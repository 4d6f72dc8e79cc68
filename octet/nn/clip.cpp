#include "octet/nn/clip.hpp"

#include "octet/ops/clamp_columns/clamp_columns.hpp"

namespace octet::nn {
namespace {

ops::CopyColumns in_place(const Tensor& x) { return {.from = x, .to = x, .columns = x.shape[1]}; }

}  // namespace

Tensor Clip::forward(Stream& stream, const Tensor& x, Region region, bool saves) const {
  if (limit_ == 0) return {};
  Tensor outside;
  if (saves) outside = stream.empty({x.shape[0], ops::clamp_bytes(x.shape[1])}, DType::u8, region, Category::activations);
  ops::clamp_columns(stream, {.columns = in_place(x), .limit = limit_, .outside = outside});
  return outside;
}

void Clip::backward(Stream& stream, const Tensor& dx, const Tensor& outside) const {
  if (limit_ > 0) ops::clamp_columns_backward(stream, {.columns = in_place(dx), .outside = outside});
}

}  // namespace octet::nn
