#include "octet/models/weight_codes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "octet/numerics/formats.hpp"

namespace octet::models {
namespace {

BlockRule rule_of(ScaleRule rule) { return {rule, E4M3::max, std::numeric_limits<float>::max()}; }

/// Calls visit(block's index, first element, columns, rows) for each block of some rows.
template <class Visit>
void for_each_block(std::int64_t rows, std::int64_t columns, ScaleBlock block, Visit visit) {
  const std::int64_t high = block.rows == 0 ? rows : block.rows, wide = block.cols == 0 ? columns : block.cols;
  std::size_t index = 0;
  for (std::int64_t r = 0; r < rows; r += high)
    for (std::int64_t c = 0; c < columns; c += wide) visit(index++, r * columns + c, std::min(wide, columns - c), std::min(high, rows - r));
}

/// code value * descale, or a neighbour of it whose descale by the rule is this one. The descale tells the rule: of a quotient that is a
/// power of two, the code is the largest of the format, for which both rules give the same.
float largest_of(float code_value, float descale) {
  const ScaleRule rule = is_power_of_two(descale) ? ScaleRule::power_of_two : ScaleRule::quotient;
  const float exact = code_value * descale;
  float above = exact, below = exact;
  for (int i = 0; i <= 4; ++i) {
    for (const float x : {above, below})
      if (block_scale(x, rule_of(rule)).descale == descale) return x;
    above = std::nextafter(above, std::numeric_limits<float>::infinity()), below = std::nextafter(below, 0.0f);
  }
  return exact;
}

}  // namespace

bool is_power_of_two(float positive) {
  int exponent = 0;
  return std::frexp(positive, &exponent) == 0.5f;
}

float largest(std::span<const float> values) {
  float out = 0;
  for (const float x : values) out = std::max(out, std::abs(x));
  return out;
}

WeightCodes encode_weights(std::span<const float> values, std::int64_t columns, ScaleBlock block, ScaleRule rule, float amax) {
  WeightCodes out{std::vector<std::byte>(values.size()), {}};
  for_each_block(std::int64_t(values.size()) / columns, columns, block,
                 [&](std::size_t, std::int64_t first, std::int64_t wide, std::int64_t high) {
                   float most = amax;
                   for (std::int64_t r = 0; amax == 0 && r < high; ++r)
                     most = std::max(most, largest(values.subspan(std::size_t(first + r * columns), std::size_t(wide))));
                   const auto scale = block_scale(most, rule_of(rule));
                   out.descales.push_back(scale.descale);
                   for (std::int64_t r = 0; r < high; ++r)
                     for (std::int64_t i = first + r * columns; i < first + r * columns + wide; ++i)
                       out.codes[std::size_t(i)] = std::byte(encode<E4M3>(values[std::size_t(i)] * scale.scale));
                 });
  return out;
}

void decode_weights(std::span<const std::byte> codes, std::span<const float> descales, std::int64_t columns, ScaleBlock block,
                    std::span<float> values) {
  constexpr std::byte sign{0x80};
  for_each_block(std::int64_t(codes.size()) / columns, columns, block,
                 [&](std::size_t index, std::int64_t first, std::int64_t wide, std::int64_t high) {
                   const float descale = descales[index];
                   const auto each = [&](auto visit) {
                     for (std::int64_t r = 0; r < high; ++r)
                       for (std::int64_t i = first + r * columns; i < first + r * columns + wide; ++i) visit(std::size_t(i));
                   };
                   std::byte most{};
                   each([&](std::size_t i) { most = std::max(most, codes[i] & ~sign); });
                   const float top = largest_of(decode<E4M3>(std::uint8_t(most)), descale);
                   each([&](std::size_t i) {
                     const float size = (codes[i] & ~sign) == most ? top : decode<E4M3>(std::uint8_t(codes[i] & ~sign)) * descale;
                     values[i] = (codes[i] & sign) == sign ? -size : size;
                   });
                 });
}

}  // namespace octet::models
