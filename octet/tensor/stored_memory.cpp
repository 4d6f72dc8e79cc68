#include "octet/tensor/stored_memory.hpp"

namespace octet {
namespace {

template <class Make>
Stored made(Shape shape, Storage storage, const Make& make) {
  Stored out{.codes = make(shape, code_type(storage)), .scales = {}, .storage = storage};
  if (has_scales(storage)) out.scales = make(scales_shape(storage, shape.count()), scales_type(storage));
  return out;
}

}  // namespace

Stored empty_stored(Stream& stream, Shape shape, Storage storage, Region region, Category category) {
  return made(shape, storage, [&](Shape s, DType d) { return stream.empty(s, d, region, category); });
}

Stored zero_stored(Stream& stream, Shape shape, Storage storage, Region region, Category category) {
  return made(shape, storage, [&](Shape s, DType d) { return stream.zeros(s, d, region, category); });
}

Stored reshaped(const Stored& x, Shape shape) { return {.codes = x.codes.reshaped(shape), .scales = x.scales, .storage = x.storage}; }
Stored flat(const Stored& x) { return reshaped(x, {x.count()}); }

}  // namespace octet
