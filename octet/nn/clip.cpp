#include "octet/nn/clip.hpp"

namespace octet::nn {
namespace {

void copy_unless_there(Stream& stream, const ops::CopyColumns& c) {
  if (c.from.data != c.to.data) ops::copy_columns(stream, c);
}

}  // namespace

Tensor Clip::forward(Stream& stream, const ops::CopyColumns& columns, Region region, bool saves) const {
  if (limit_ == 0) {
    copy_unless_there(stream, columns);
    return {};
  }
  Tensor outside;
  if (saves) outside = stream.empty({columns.from.shape[0], ops::clamp_bytes(columns.columns)}, DType::u8, region, Category::activations);
  ops::clamp_columns(stream, {.columns = columns, .limit = limit_, .outside = outside});
  return outside;
}

void Clip::backward(Stream& stream, const ops::CopyColumns& columns, const Tensor& outside) const {
  if (limit_ == 0) return copy_unless_there(stream, columns);
  ops::clamp_columns_backward(stream, {.columns = columns, .outside = outside});
}

}  // namespace octet::nn
