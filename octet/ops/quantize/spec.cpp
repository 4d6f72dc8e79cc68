#include "octet/ops/quantize/spec.hpp"

namespace octet::ops {
namespace {

// Blocks that divide a tile of 128 rows, and whose maxima a register holds.
bool has_kernel(ScaleBlock b) {
  return b.whole_tensor() || b.whole_rows() || b == ScaleBlock{128, 128} ||
         (b.rows == 1 && (b.cols == 32 || b.cols == 64 || b.cols == 128));
}

}  // namespace

void check_quantizable(const QuantizeSpec& s) {
  if (!s.quantizes()) return;
  check(has_kernel(s.rows) && has_kernel(s.cols), "quantize: scales are per tensor, row, 1x32, 1x64, 1x128 or 128x128, got {} and {}",
        s.rows, s.cols);
  if (!s.scale_known()) return;
  check(s.rows.whole_tensor() && s.cols.whole_tensor(), "quantize: a known scale is one for the whole tensor, got blocks {} and {}", s.rows,
        s.cols);
  check(s.scale.dtype == DType::f32 && s.scale.count() == 1 && s.descale.dtype == DType::f32 && s.descale.count() == 1,
        "quantize: a known scale and its descale are f32 [1], got {} {} and {} {}", s.scale.dtype, s.scale.shape, s.descale.dtype,
        s.descale.shape);
  check(s.rule != ScaleRule::e8m0, "quantize: the e8m0 rule takes its scales from the data, but a scale was given");
}

}  // namespace octet::ops
