#pragma once

#include <vector>

#include "octet/ops/quantize/spec.hpp"

// Cases of quantization tests.

namespace octet::ops {

/// A way to quantize.
struct QuantizeCase {
  const char* name;
  QuantizeSpec spec;
  bool known = false;  // the scale is, as one from past maxima
};

/// Each block, rule and format, alike in both orientations and mixed.
inline std::vector<QuantizeCase> quantize_cases() {
  const ScaleBlock tensor{0, 0}, row{1, 0}, v32{1, 32}, v128{1, 128}, square{128, 128};
  using enum ScaleRule;
  return {
      {"known", {.format = DType::e4m3}, true},
      {"known e5m2", {.format = DType::e5m2}, true},
      {"tensor", {.format = DType::e4m3}},
      {"tensor e5m2", {.format = DType::e5m2}},
      {"tensor, power of two", {.format = DType::e4m3, .rule = power_of_two}},
      {"row", {.format = DType::e4m3, .rule = power_of_two, .rows = row, .cols = row}},
      {"row, quotient", {.format = DType::e5m2, .rule = quotient, .rows = row, .cols = row}},
      {"1x128", {.format = DType::e4m3, .rule = power_of_two, .rows = v128, .cols = v128}},
      {"1x128 quotient e5m2", {.format = DType::e5m2, .rule = quotient, .rows = v128, .cols = v128}},
      {"1x128 quotient", {.format = DType::e4m3, .rows = v128, .cols = v128}},
      {"128x128", {.format = DType::e4m3, .rule = power_of_two, .rows = square, .cols = square}},
      {"128x128 quotient e5m2", {.format = DType::e5m2, .rows = square, .cols = square}},
      {"1x32 e8m0", {.format = DType::e4m3, .rule = e8m0, .rows = v32, .cols = v32}},
      {"1x32 e8m0 e5m2", {.format = DType::e5m2, .rule = e8m0, .rows = v32, .cols = v32}},
      {"1x32 f32", {.format = DType::e4m3, .rule = power_of_two, .rows = v32, .cols = v32}},
      {"row and tensor", {.format = DType::e4m3, .rule = power_of_two, .rows = row, .cols = tensor}},
      {"tensor and 1x128", {.format = DType::e4m3, .rule = power_of_two, .rows = tensor, .cols = v128}},
      {"128x128 and 1x128", {.format = DType::e4m3, .rule = power_of_two, .rows = square, .cols = v128}},
  };
}

}  // namespace octet::ops
