#include "octet/ops/gated_gemm/gated_gemm.hpp"

#include <gtest/gtest.h>

#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

Sink sink_of(Stream& s, const Shape& shape, ScaleBlock block, bool codes = true) {
  const QuantizeSpec spec{.format = codes ? DType::e4m3 : DType::bf16, .rule = ScaleRule::power_of_two, .rows = block, .cols = block};
  return make_sink(s, spec, {.shape = shape, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
}

Quantized operand(Stream& s, const Shape& shape, std::uint64_t seed, ScaleBlock block, bool codes) {
  Sink sink = sink_of(s, shape, block, codes);
  quantize(s, testing::gaussian_tensor(s, shape, seed, DType::bf16), sink);
  return sink.codes.rows;
}

TEST(GatedGemm, HasTheBitsOfItsParts) {
  for (const bool codes : {false, true})
    for (const std::int64_t rows : {1, 3})
      for (const Gate gate : {Gate::silu, Gate::gelu}) {
        Stream s(Device::cpu);
        const Quantized a = operand(s, {rows, 64}, 1, {1, 128}, codes), b = operand(s, {256, 64}, 2, {128, 128}, codes);
        const Tensor d = s.empty({rows, 256}, DType::bf16), again = s.empty({rows, 256}, DType::bf16);
        Sink y = sink_of(s, {rows, 128}, {1, 32}), wanted = sink_of(s, {rows, 128}, {1, 32});
        gated_gemm(s, {{.a = a, .b = b, .d = d}, gate}, y);
        gemm(s, {.a = a, .b = b, .d = again});
        swiglu_forward(s, again, wanted, nullptr, gate);
        EXPECT_EQ(testing::bytes(y.codes.rows.codes), testing::bytes(wanted.codes.rows.codes));
        EXPECT_EQ(testing::bytes(y.codes.rows.descales), testing::bytes(wanted.codes.rows.descales));
      }
}

// Launches of a GPU.
std::int64_t launches(std::int64_t rows, std::int64_t F, ScaleBlock scales, bool codes = true) {
  Stream s(Device::null, {.device = Device::cuda, .multiprocessors = 132});
  const Quantized a = sink_of(s, {rows, 64}, {1, 128}).codes.rows, b = sink_of(s, {2 * F, 64}, {128, 128}).codes.rows;
  Sink y = sink_of(s, {rows, F}, scales, codes);
  const std::int64_t before = s.work().ops;
  gated_gemm(s, {{.a = a, .b = b, .d = s.empty({rows, 2 * F}, DType::bf16)}}, y);
  return s.work().ops - before;
}

TEST(GatedGemm, OfARowIsOneLaunchUnlessScalesNeedAllOfIt) {
  EXPECT_EQ(launches(1, 256, {}, false), 1);
  for (const ScaleBlock blocks : {ScaleBlock{1, 32}, {1, 128}}) EXPECT_EQ(launches(1, 256, blocks), 1);
  for (const ScaleBlock all : {ScaleBlock{0, 0}, {1, 0}}) EXPECT_EQ(launches(1, 256, all), 2);
  EXPECT_EQ(launches(1, 192, {1, 128}), 2) << "no whole blocks";
  EXPECT_EQ(launches(2, 256, {1, 128}), 2);
}

TEST(GatedGemm, RefusesOtherShapes) {
  Stream s(Device::null);
  const Quantized a = sink_of(s, {1, 64}, {1, 128}).codes.rows, b = sink_of(s, {256, 64}, {128, 128}).codes.rows;
  Sink y = sink_of(s, {1, 64}, {1, 32});
  EXPECT_THROW(gated_gemm(s, {{.a = a, .b = b, .d = s.empty({1, 256}, DType::bf16)}}, y), ContractError);
}

}  // namespace
}  // namespace octet::ops
