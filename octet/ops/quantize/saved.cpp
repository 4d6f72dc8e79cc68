#include "octet/ops/quantize/saved.hpp"

#include "octet/ops/quantize/quantize.hpp"

namespace octet::ops {

QuantizeSpec saved_spec() {
  QuantizeSpec spec;
  spec.format = DType::e4m3, spec.rule = ScaleRule::e8m0, spec.rows = spec.cols = {1, saved_block};
  return spec;
}

Sink saved_sink(Stream& stream, const Tensor& x, const QuantizeSpec& spec, Region region) {
  return make_sink(stream, spec,
                   {.shape = x.shape, .dtype = x.dtype, .rows_region = region, .plain = x, .category = Category::activations});
}

Tensor values_of(Stream& stream, const Saved& saved) {
  if (!saved.coded()) return saved.values;
  const Tensor out = stream.empty(saved.shape, saved.dtype);
  dequantize(stream, saved.codes, out);
  return out;
}

void check_saved(const Saved& x, int parts, const char* op) {
  if (!x.coded()) return;
  const Quantized& q = x.codes;
  check(q.codes.dtype == DType::e4m3 && q.block == ScaleBlock{1, saved_block} && q.descales.dtype == DType::e8m0 && !q.transposed,
        "{}: a saved matrix has E4M3 codes in 1x{} blocks with E8M0 scales, got {} in blocks {}", op, saved_block, q.codes.dtype, q.block);
  check(x.shape[1] % (parts * saved_block) == 0, "{}: codes need {} x {} columns or a multiple, got {}", op, parts, saved_block, x.shape);
}

}  // namespace octet::ops
