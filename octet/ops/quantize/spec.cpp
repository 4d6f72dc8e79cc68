#include "octet/ops/quantize/spec.hpp"

namespace octet::ops {
namespace {

// Blocks that divide a tile of 128 rows, and whose maxima a register holds.
bool has_kernel(ScaleBlock b) {
  return b.whole_matrices() || b.whole_rows() || b == ScaleBlock{128, 128} ||
         (b.rows == 1 && (b.cols == 32 || b.cols == 64 || b.cols == 128));
}

Tensor row_of(const Tensor& t, std::int64_t e) { return t ? t.rows(e, 1) : t; }

}  // namespace

QuantizeSpec QuantizeSpec::of_matrix(std::int64_t e) const {
  QuantizeSpec one = *this;
  if (!scales_matrices() || rows.whole_tensor()) return one;
  one.rows = one.cols = {};
  one.scale = row_of(scale, e), one.descale = row_of(descale, e), one.amax = row_of(amax, e);
  return one;
}

void check_quantizable(const QuantizeSpec& s) {
  if (!s.quantizes()) return;
  check(has_kernel(s.rows) && has_kernel(s.cols), "quantize: scales are per tensor, row, 1x32, 1x64, 1x128 or 128x128, got {} and {}",
        s.rows, s.cols);
  const bool stacked = s.rows.whole_matrices() && !s.rows.whole_tensor();
  check(!stacked || (s.same_codes() && s.rows.cols == 0 && s.descale_dtype() == DType::f32),
        "quantize: a stack has f32 scales of n rows and of n columns of its transpose, got {} and {}", s.rows, s.cols);
  if (!s.scale_known()) return;
  check(s.scales_matrices(), "quantize: a known scale is one for the whole tensor or a matrix of a stack, got blocks {} and {}", s.rows,
        s.cols);
  check(
      s.scale.dtype == DType::f32 && s.descale.dtype == DType::f32 && s.descale.shape == s.scale.shape && (stacked || s.scale.count() == 1),
      "quantize: known scales and their descales are f32 [1], or one per matrix of a stack, got {} {} and {} {}", s.scale.dtype,
      s.scale.shape, s.descale.dtype, s.descale.shape);
  check(s.rule != ScaleRule::e8m0, "quantize: the e8m0 rule takes its scales from the data, but a scale was given");
}

}  // namespace octet::ops
