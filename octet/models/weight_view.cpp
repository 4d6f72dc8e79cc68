#include "octet/models/weight_view.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/models/weight_codes.hpp"
#include "octet/numerics/formats.hpp"

namespace octet::models {
namespace {

/// Elements [first, first + n) of a tensor, as a tensor of rank 1 whose shape is `n` itself.
io::TensorView part_of(const io::TensorView& tensor, std::int64_t first, const std::int64_t& n) {
  const std::size_t bytes = std::size_t(io::element_bits(tensor.dtype)) / 8;
  return {tensor.name, tensor.dtype, {&n, 1}, tensor.bytes.subspan(std::size_t(first) * bytes, std::size_t(n) * bytes)};
}

[[noreturn]] void refuse(const io::TensorView& tensor, const std::string& what) {
  throw DataError(format("tensor \"{}\" {}; fetch the weights again, or export them again", printable(tensor.name), what));
}

void require_scales(const io::TensorView& scales, std::span<const float> values) {
  for (const float x : values)
    if (!(x > 0) || !std::isfinite(x)) refuse(scales, format("has the scale {}, where every scale must be positive and finite", x));
}

}  // namespace

std::vector<float> WeightView::descales(std::int64_t first, std::int64_t rows, std::int64_t columns) const {
  const std::int64_t wide = blocks_of(columns, block.cols), n = blocks_of(rows, block.rows) * wide;
  const io::TensorView part = part_of(*scales, block.rows == 0 ? 0 : first / block.rows * wide, n);
  std::vector<float> out(std::size_t(n), 0.0f);
  if (part.dtype == io::StoredDType::e8m0)
    std::ranges::transform(part.bytes, out.begin(), [](std::byte code) { return decode_e8m0(std::uint8_t(code)); });
  else io::to_f32(part, out);
  require_scales(*scales, out);
  return out;
}

float WeightView::activation_scale() const {
  const std::vector<float> out = io::to_f32(*input_scale);
  require_scales(*input_scale, out);
  return out[0];
}

void WeightView::read(std::int64_t first, std::int64_t columns, std::span<float> values) const {
  const std::int64_t n = std::int64_t(values.size());
  const io::TensorView part = part_of(tensor, first * columns, n);
  if (!scales) return io::to_f32(part, values);
  for (const std::byte code : part.bytes)
    if ((code & std::byte(0x7F)) == std::byte(E4M3::nan_code)) refuse(tensor, "has a code that is NaN, 0x7F or 0xFF");
  if (input_scale) activation_scale();  // is not used, but a damaged one is a damaged folder
  decode_weights(part.bytes, descales(first, n / columns, columns), columns, block, values);
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) refuse(tensor, "has a value that FP32 cannot hold");
}

}  // namespace octet::models
