#include "octet/tensor/stream.hpp"

#include <cstring>

namespace octet {

Tensor Stream::zeros(Shape shape, DType dtype, Region region, Category category) {
  const Tensor t = empty(shape, dtype, region, category);
  clear(*this, t);
  return t;
}

void copy(Stream& stream, const Tensor& from, const Tensor& to) {
  check(from.shape == to.shape && from.dtype == to.dtype, "copy: {} {} does not fit {} {}", from.shape, from.dtype, to.shape, to.dtype);
  stream.count({.ops = 1, .bytes = 2.0 * double(from.bytes())});
  if (stream.device() == Device::cpu && from.data != to.data) std::memcpy(to.data, from.data, from.bytes());
}

void clear(Stream& stream, const Tensor& t) {
  stream.count({.ops = 1, .bytes = double(t.bytes())});
  if (stream.device() == Device::cpu && t.bytes() != 0) std::memset(t.data, 0, t.bytes());
}

}  // namespace octet
