#include <gtest/gtest.h>

#include "octet/ops/quantize/quantize.kernels.hpp"
#include "tests/testing/floats.hpp"
#include "tests/testing/tensors.hpp"

// Against the definition of a code's value, one at a time.

namespace octet::ops {
namespace {

float value_of_code(DType type, std::uint8_t code) { return type == DType::e4m3 ? decode<E4M3>(code) : decode<E5M2>(code); }

/// Every code in turn, in rows of which none begins with the same; a row has so many values that registers do not divide it.
Quantized codes(Stream& stream, DType fp8, Shape stored) {
  Quantized q{.codes = stream.empty(stored, fp8)};
  for (std::int64_t i = 0; i < stored.count(); ++i) q.codes.u8()[i] = std::uint8_t(i * 7 + i / 256);
  return q;
}

/// Bits of what became of a value, and of what should have: a NaN is any NaN.
void expect_value(const Tensor& out, std::int64_t i, float wanted, const std::string& what) {
  const float rounded = out.dtype == DType::bf16 ? to_float(to_bf16(wanted)) : wanted, got = value_at(out, i);
  if (rounded != rounded) ASSERT_TRUE(got != got) << what << " at " << i;
  else ASSERT_EQ(bits_of(got), bits_of(rounded)) << what << " at " << i << ": " << got << ", not " << rounded;
}

// Some descales take a value below what BF16 holds, so that it must be rounded.
constexpr float powers[] = {1.0f, 0x1p-20f, 0x1p30f, 0x1p-100f, 0x1p-101f, 0x1p-118f, 0x1p-124f, 0x1p-126f}, others[] = {0.3f, 1e-37f};

void try_descale(DType fp8, float descale, bool power_of_two, DType type) {
  Stream stream(Device::cpu);
  const std::string what = format("{}, descale {}, as {}", fp8, descale, type);
  for (const std::int64_t cols : {256, 77}) {
    Quantized q = codes(stream, fp8, {5, cols});
    q.power_of_two = power_of_two, q.descales = testing::tensor_of(stream, {descale}, {1});
    const Tensor out = stream.empty(q.codes.shape, type);
    for (const auto decode_operand : testing::kernels(cpu::v3::decode_operand, cpu::v4::decode_operand)) {
      decode_operand(q, true, out);
      for (std::int64_t i = 0; i < out.count(); ++i) expect_value(out, i, value_of_code(fp8, q.codes.u8()[i]) * descale, what);
    }
  }
}

TEST(Decode, ACodeBecomesItsValueTimesTheDescale) {
  for (const DType fp8 : {DType::e4m3, DType::e5m2})
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const float descale : powers) try_descale(fp8, descale, true, type);
      for (const float descale : others) try_descale(fp8, descale, false, type);
    }
}

// Columns as they stand in a matrix that was stored by rows: neighbours have descales of their own.
TEST(Decode, EachValueOfAViewHasItsDescale) {
  for (const DType fp8 : {DType::e4m3, DType::e5m2})
    for (const DType type : {DType::f32, DType::bf16}) {
      Stream stream(Device::cpu);
      Quantized q = codes(stream, fp8, {40, 301});
      q.transposed = true, q.power_of_two = true, q.block = {1, 0};
      std::vector<float> descales;
      for (int i = 0; i < 301; ++i) descales.push_back(i < 256 ? 0x1p-3f * float(1 << i % 5) : powers[i % 8]);
      q.descales = testing::tensor_of(stream, descales, descale_shape(q.block, DType::f32, q.rows(), q.cols()));
      const Tensor out = stream.empty(q.codes.shape, type);
      for (const auto decode_operand : testing::kernels(cpu::v3::decode_operand, cpu::v4::decode_operand)) {
        decode_operand(q, true, out);
        for (std::int64_t i = 0; i < out.count(); ++i)
          expect_value(out, i, value_of_code(fp8, q.codes.u8()[i]) * descales[std::size_t(i % 301)], "a view");
      }
    }
}

// Every FP16 number, and floats on both sides of the middle between any two; all floats when exhaustive. Rows are no multiple of a
// register.
TEST(Decode, Fp16HasTheBitsOfItsScalarConversionsBothWays) {
  Stream stream(Device::cpu);
  const Tensor all = stream.empty({1, 0x10000}, DType::f16), wide = stream.empty(all.shape, DType::f32);
  for (std::uint32_t code = 0; code < 0x10000u; ++code) all.f16()[code].bits = std::uint16_t(code);
  const std::uint32_t step = testing::exhaustive() ? 1 : 4099;
  constexpr std::int64_t chunk = (std::int64_t(1) << 20) + 3;
  const Tensor x = stream.empty({1, chunk}, DType::f32), narrow = stream.empty({1, chunk}, DType::f16);
  for (const auto decode_operand : testing::kernels(cpu::v3::decode_operand, cpu::v4::decode_operand)) {
    decode_operand({.codes = all}, false, wide);
    for (std::int64_t i = 0; i < all.count(); ++i) ASSERT_EQ(bits_of(wide.f32()[i]), bits_of(to_float(all.f16()[i]))) << i;
    const auto expect_narrow = [&] {
      decode_operand({.codes = x}, false, narrow);
      for (std::int64_t i = 0; i < chunk; ++i) ASSERT_EQ(narrow.f16()[i].bits, to_fp16(x.f32()[i]).bits) << x.f32()[i];
    };
    for (std::int64_t i = 0; i < chunk; ++i) {
      const std::uint32_t code = std::uint32_t(i / 3) % 0x7C00u;
      const float tie =
          0.5f * (to_float(Fp16{std::uint16_t(code)}) + (code < 0x7BFFu ? to_float(Fp16{std::uint16_t(code + 1)}) : 65536.0f));
      x.f32()[i] = float_of((bits_of(tie) + std::uint32_t(i % 3) - 1) | (i % 2 ? 0x80000000u : 0u));
    }
    expect_narrow();
    for (std::uint64_t begin = 0; begin < 0x100000000u; begin += std::uint64_t(chunk) * step) {
      for (std::int64_t i = 0; i < chunk; ++i) x.f32()[i] = float_of(std::uint32_t(begin + std::uint64_t(i) * step));
      expect_narrow();
    }
  }
}

}  // namespace
}  // namespace octet::ops
