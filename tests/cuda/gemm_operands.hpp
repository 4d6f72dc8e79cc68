#pragma once

#include <cmath>

#include "octet/ops/quantize/quantize.hpp"
#include "tests/cuda/parity.hpp"
#include "tests/testing/rounded.hpp"

// Operands of GEMMs for both sides, quantized on the CPU, so that both multiply the same codes.

namespace octet::parity {

using ops::QuantizeSpec;

struct OperandKind {
  const char* name;
  QuantizeSpec spec;
  DType source = DType::bf16;
  bool cols = false;  // the transpose of the stored matrix
};

// A GEMM operand in the host's memory.
struct OperandCodes {
  std::vector<std::uint8_t> codes, descales;
  Quantized form;
};

inline std::vector<std::uint8_t> bytes_of(const Tensor& t) { return {t.u8(), t.u8() + t.bytes()}; }

/// `sixteenths`: whole ones up to 15, which every scale that is a power of two keeps exactly, so sums of products are exact in any order.
enum class Values { gaussian, positive, sixteenths };

inline OperandCodes operand(const OperandKind& kind, std::int64_t rows, std::int64_t cols, std::uint64_t seed, Values values) {
  Stream stream(Device::cpu);
  const Shape shape = kind.cols ? Shape{cols, rows} : Shape{rows, cols};
  std::vector<float> numbers = testing::gaussian(std::size_t(shape.count()), seed, 0.3);
  if (values == Values::positive)
    for (float& x : numbers) x = std::fabs(x);
  if (values == Values::sixteenths)
    for (float& x : numbers) x = std::fmin(std::fmax(std::round(10 * x), -15.0f), 15.0f) / 16;
  const Tensor x = stream.empty(shape, kind.source);
  for (std::int64_t i = 0; i < shape.count(); ++i) testing::put(x, i, numbers[std::size_t(i)]);
  ops::Sink sink = make_sink(stream, kind.spec, {.shape = shape, .dtype = kind.source, .rows = !kind.cols, .cols = kind.cols});
  if (kind.spec.format == kind.source) sink.codes.rows = {.codes = x}, sink.codes.cols = {.codes = x, .transposed = true};
  else ops::quantize(stream, x, sink);
  const Quantized q = kind.cols ? sink.codes.cols : sink.codes.rows;
  return {bytes_of(q.codes), q.descales ? bytes_of(q.descales) : std::vector<std::uint8_t>{}, q};
}

// The same codes without their signs, which makes a GEMM the sum of magnitudes that bounds are made of.
inline OperandCodes magnitudes(OperandCodes c) {
  const std::size_t size = size_of(c.form.codes.dtype);
  for (std::size_t i = size - 1; i < c.codes.size(); i += size) c.codes[i] &= 0x7F;
  return c;
}

inline Quantized put(Side& side, const OperandCodes& c) {
  Quantized q = c.form;
  const auto at = [&](const std::vector<std::uint8_t>& bytes, const Tensor& like) {
    Tensor t = side.raw(bytes, {std::int64_t(bytes.size())});
    return Tensor{t.data, like.shape, like.dtype};
  };
  q.codes = at(c.codes, c.form.codes);
  if (c.form.descales) q.descales = at(c.descales, c.form.descales);
  return q;
}

/// Every layout of scales.
inline std::vector<OperandKind> operand_kinds() {
  using enum ScaleRule;
  const ScaleBlock row{1, 0}, v32{1, 32}, v128{1, 128}, square{128, 128};
  const QuantizeSpec half{.format = DType::bf16}, full{.format = DType::f32}, tensor{.format = DType::e4m3}, tensor5{.format = DType::e5m2};
  const auto blocks = [](ScaleRule rule, ScaleBlock b, DType format = DType::e4m3) {
    return QuantizeSpec{.format = format, .rule = rule, .rows = b, .cols = b};
  };
  return {{"bf16", half},
          {"bf16 transposed", half, DType::bf16, true},
          {"f32", full, DType::f32},
          {"f32 transposed", full, DType::f32, true},
          {"tensor", tensor},
          {"tensor e5m2", tensor5},
          {"row", blocks(quotient, row)},
          {"row e5m2", blocks(power_of_two, row, DType::e5m2)},
          {"1x128", blocks(power_of_two, v128)},
          {"1x128 quotient", blocks(quotient, v128)},
          {"1x128 e5m2", blocks(power_of_two, v128, DType::e5m2)},
          {"128x128", blocks(power_of_two, square)},
          {"1x32 e8m0", blocks(e8m0, v32)},
          {"f16", {.format = DType::f16}, DType::f16},
          {"f16 transposed", {.format = DType::f16}, DType::f16, true}};
}

}  // namespace octet::parity
