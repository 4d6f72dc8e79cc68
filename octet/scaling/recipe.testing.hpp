#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "octet/ops/quantize/quantize.hpp"
#include "octet/scaling/precision.hpp"
#include "tests/testing/code_table.hpp"
#include "tests/testing/testing.hpp"

// Shared by tests of recipes: one linear layer under a recipe, awkward values, and a comparison of its quantizers' results with
// the recipe's definition in double precision. The comparison uses no rule, layout or format of Octet's own.

namespace octet::testing {

struct Matrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> x;
  float at(std::int64_t r, std::int64_t c) const { return x[std::size_t(r * cols + c)]; }
  Matrix transposed() const {
    Matrix t{cols, rows, {}};
    for (std::int64_t c = 0; c < cols; ++c)
      for (std::int64_t r = 0; r < rows; ++r) t.x.push_back(at(r, c));
    return t;
  }
  double amax() const {
    double most = 0;
    for (const float v : x)
      if (!std::isnan(v)) most = std::max(most, std::fabs(double(v)));
    return most;
  }
};

enum class Values : std::uint8_t { finite, any };

/// Gaussian BF16 values with outliers, zeros, a row and a column of zeros; `any`: NaN and infinities, too, in one corner.
inline Matrix awkward(std::int64_t rows, std::int64_t cols, Values kind, unsigned seed = 1, double scale = 1) {
  Matrix m{rows, cols, gaussian(std::size_t(rows * cols), seed, scale)};
  std::mt19937 random(seed);
  for (float& v : m.x) {
    const unsigned what = random() % 97;
    if (what == 0) v *= 300;
    if (what == 1) v = 0;
    if (what == 2) v = -0.0f;
    if (what == 3) v *= 1e-6f;
  }
  const auto at = [&](std::int64_t r, std::int64_t c) -> float& { return m.x[std::size_t(r * cols + c)]; };
  for (std::int64_t c = 0; c < cols; ++c) at(rows / 2, c) = 0;
  for (std::int64_t r = 0; r < rows; ++r) at(r, cols / 2) = 0;
  if (kind == Values::any)
    at(1, 2) = std::numeric_limits<float>::quiet_NaN(), at(1, 3) = HUGE_VALF, at(2, 3) = -HUGE_VALF, at(3, 2) = -at(1, 2);
  for (float& v : m.x) v = to_float(to_bf16(v));
  return m;
}

inline Tensor tensor_of(Stream& stream, const Matrix& m) {
  const Tensor t = stream.empty({m.rows, m.cols}, DType::bf16, Lifetime::run);
  for (std::size_t i = 0; i < m.x.size(); ++i) t.bf16()[i] = to_bf16(m.x[i]);
  return t;
}

/// Both orientations of a tensor under a quantizer, as codes.
inline QTensor quantized(Stream& stream, const scaling::Quantizer& quantizer, const Matrix& m,
                         const scaling::Pass& pass = {.kind = scaling::Pass::Kind::train}) {
  ops::Sink sink =
      ops::make_sink(stream, quantizer.spec(pass),
                     {.shape = {m.rows, m.cols}, .rows = true, .cols = true, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
  ops::quantize(stream, tensor_of(stream, m), sink);
  return sink.codes;
}

/// The definition of one orientation of an operand, [rows, cols] with K along the columns.
struct Definition {
  DType format;
  std::int64_t block_rows, block_cols;                             // values that share a scale; 0: all
  std::function<double(double amax)> scale;                        // that values are multiplied by; amax over a block, without NaN
  std::function<std::int64_t(std::int64_t i, std::int64_t j)> at;  // index of the descale of block (i, j)
  bool power_of_two = false;                                       // scales are: then nothing but a code's own rounding is inexact
};

inline const CodeTable& table_of(DType format) { return format == DType::e4m3 ? CodeTable::e4m3() : CodeTable::e5m2(); }

/// A code is right when no other is nearer to x * scale, of two equally near ones the even; where the scale itself is rounded to FP32, by
/// two roundings of FP32 at most.
inline bool is_nearest(const CodeTable& table, std::uint8_t code, double y, bool exact) {
  const std::uint8_t wanted = table.encode(y);
  if (code == wanted || exact || std::isnan(y)) return code == wanted;
  const double most = table.finite().back(), within = std::fabs(y) * 0x1p-22, off = std::fabs(table.decode(code) - y),
               least = std::fabs(table.decode(wanted) - y);
  return std::fabs(y) < most && off <= least + 2 * within;
}

/// Codes and descales of one orientation of m are those of the definition.
inline void expect_defined(const Quantized& q, const Matrix& m, const Definition& d, const std::string& what) {
  const CodeTable& table = table_of(d.format);
  ASSERT_EQ(q.codes.dtype, d.format) << what;
  ASSERT_EQ(q.codes.shape, Shape({m.rows, m.cols})) << what;
  EXPECT_EQ(q.power_of_two, d.power_of_two) << what;
  const std::int64_t br = d.block_rows == 0 ? m.rows : d.block_rows, bc = d.block_cols == 0 ? m.cols : d.block_cols;
  int wrong = 0;
  for (std::int64_t i = 0; i * br < m.rows; ++i)
    for (std::int64_t j = 0; j * bc < m.cols; ++j) {
      const std::int64_t last_row = std::min(m.rows, (i + 1) * br), last_col = std::min(m.cols, (j + 1) * bc);
      double amax = 0;
      for (std::int64_t r = i * br; r < last_row; ++r)
        for (std::int64_t c = j * bc; c < last_col; ++c)
          if (!std::isnan(m.at(r, c))) amax = std::max(amax, std::fabs(double(m.at(r, c))));
      const double scale = d.scale(amax), descale = value_at(q.descales, d.at(i, j));
      if (d.power_of_two) EXPECT_EQ(descale * scale, 1) << what << ": block " << i << ", " << j << " of maximum " << amax;
      else EXPECT_NEAR(descale * scale, 1, 0x1p-22) << what << ": block " << i << ", " << j << " of maximum " << amax;
      for (std::int64_t r = i * br; r < last_row; ++r)
        for (std::int64_t c = j * bc; c < last_col; ++c) {
          const std::uint8_t code = q.codes.u8()[r * m.cols + c];
          if (!is_nearest(table, code, m.at(r, c) * scale, d.power_of_two) && wrong++ < 3)
            ADD_FAILURE() << what << ": " << m.at(r, c) << " at " << r << ", " << c << " became code " << int(code) << ", "
                          << table.decode(code) << " / " << scale;
        }
    }
  EXPECT_EQ(wrong, 0) << what;
}

/// One linear layer of a model under a recipe, in the sizes that show the edges of blocks: 160 x 288 weights, 130 tokens.
struct OneLayer {
  static constexpr std::int64_t out = 160, in = 288, tokens = 130;

  Stream stream{Device::cpu};
  scaling::Precision precision;
  scaling::LinearPlan plan;
  Tensor skip;

  explicit OneLayer(const scaling::PrecisionConfig& config)
      : precision(config), plan(precision.plan({.path = "layers.1.mlp.up", .out = out, .in = in, .layer = 1, .layers = 4})) {
    precision.allocate(stream);
    skip = stream.zeros({1}, DType::f32, Lifetime::run);
  }
  void end_step(bool skipped = false) {
    *skip.f32() = skipped ? 1 : 0;
    precision.end_step(stream, skip);
  }
  const scaling::Quantizer& operand(scaling::Operand o) const {
    return o == scaling::Operand::activation ? *plan.x : o == scaling::Operand::weight ? *plan.w : *plan.dy;
  }
  /// Values of the operand's shape.
  static Matrix values(scaling::Operand o, Values kind, unsigned seed = 1, double scale = 1) {
    if (o == scaling::Operand::weight) return awkward(out, in, kind, seed, scale);
    return awkward(tokens, o == scaling::Operand::activation ? in : out, kind, seed, scale);
  }
  /// The layer's row in the precision plan.
  std::string row() const { return precision.rows().back().precision + " | " + precision.rows().back().why; }
};

inline constexpr scaling::Operand operands[] = {scaling::Operand::activation, scaling::Operand::weight, scaling::Operand::gradient};

}  // namespace octet::testing
