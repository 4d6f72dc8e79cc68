#include "octet/ops/quantize/stack.hpp"

#include <gtest/gtest.h>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/stored/stored.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t E = 3, N = 40, K = 48;

// Matrices whose magnitudes are far apart; the last is all zeros.
Stored stack(Stream& s, Storage storage) {
  const Tensor x = testing::gaussian_tensor(s, {E * N, K}, 1);
  for (std::int64_t i = 0; i < x.count(); ++i) x.f32()[i] *= i < N * K ? 100.0f : i < 2 * N * K ? 1e-3f : 0.0f;
  Stored out{.codes = s.empty(x.shape, code_type(storage), Lifetime::run), .storage = storage};
  if (scales_tensor(storage)) out.scales = s.zeros({2}, DType::f32, Lifetime::run);
  encode_stored(s, x, out);
  return out;
}

TEST(QuantizeStack, EveryMatrixIsQuantizedAsATensorByItself) {
  for (const DType compute : {DType::f32, gemm_compute()})
    for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16})
      for (const ScaleRule rule : {ScaleRule::quotient, ScaleRule::power_of_two})
        for (const bool for_gemm : {false, true})
          for (const auto [rows, cols] : {std::array{true, false}, std::array{false, true}, std::array{true, true}}) {
            Stream s(Device::cpu, {.gemm_compute = compute});
            const Stored x = stack(s, storage);
            const QuantizeSpec spec{.format = DType::e4m3, .rule = rule};
            SinkRequest want{.shape = x.shape(), .dtype = x.value_type(), .rows = rows, .cols = cols, .for_gemm = for_gemm};
            Sink all = make_stack_sink(s, spec, want, E);
            quantize_stack(s, x, all);
            for (std::int64_t e = 0; e < E; ++e) {
              Stored one = x;
              one.codes = x.codes.rows(e * N, N), want.shape = {N, K};
              Sink alone = make_sink(s, spec, want);
              quantize(s, one, alone);
              for (std::int64_t n = 0; n < N; ++n)
                for (std::int64_t k = 0; k < K; ++k) {
                  if (rows) {
                    ASSERT_EQ(value_at(all.codes.rows, e * N + n, k), value_at(alone.codes.rows, n, k)) << e << " " << n << " " << k;
                  }
                  if (cols) {
                    ASSERT_EQ(value_at(all.codes.cols, k, e * N + n), value_at(alone.codes.cols, k, n)) << e << " " << n << " " << k;
                  }
                }
            }
          }
}

TEST(QuantizeStack, MeasuresWhatItsMatricesMeasure) {
  Stream s(Device::cpu);
  const Stored x = stack(s, Storage::f32);
  QuantizeHealth health[2];
  const Tensor amax = s.zeros({2}, DType::f32);
  QuantizeSpec spec{.format = DType::e4m3, .amax = amax.rows(0, 1), .health = &health[0]};
  Sink all = make_stack_sink(s, spec, {.shape = x.shape(), .dtype = DType::f32}, E);
  quantize_stack(s, x, all);
  spec.amax = amax.rows(1, 1), spec.health = &health[1];
  for (std::int64_t e = 0; e < E; ++e) {
    Sink alone = make_sink(s, spec, {.shape = {N, K}, .dtype = DType::f32});
    quantize(s, x.codes.rows(e * N, N), alone);
    EXPECT_EQ(all.codes.rows.descales.f32()[e], *alone.codes.rows.descales.f32());
  }
  EXPECT_EQ(amax.f32()[0], amax.f32()[1]);
  EXPECT_EQ(health[0].values, health[1].values);
  EXPECT_EQ(health[0].flushed, health[1].flushed);
  EXPECT_EQ(health[0].scale_min, health[1].scale_min);
  EXPECT_EQ(health[0].scale_max, health[1].scale_max);
}

TEST(QuantizeStack, StoresNoCopyOfTheValues) {
  Stream s(Device::null, {.device = Device::cuda});
  const Scope scope(s);
  const Sink sink = make_stack_sink(s, {.format = DType::e4m3}, {.shape = {E * 64, 64}, .cols = true}, E);
  EXPECT_FALSE(sink.plain);
  EXPECT_EQ(sink.codes.rows.descales.shape, Shape{E});
  EXPECT_EQ(sink.codes.cols.descales.data, sink.codes.rows.descales.data);
}

TEST(QuantizeStack, RefusesWhatDoesNotFit) {
  Stream s(Device::cpu);
  const ScaleBlock row{1, 0};
  const QuantizeSpec spec{.format = DType::e4m3}, rows{.format = DType::e4m3, .rows = row, .cols = row};
  EXPECT_THROW(make_stack_sink(s, rows, {.shape = {6, 4}}, 3), ContractError) << "rows have scales of their own";
  EXPECT_THROW(make_stack_sink(s, spec, {.shape = {7, 4}}, 3), ContractError);
  EXPECT_THROW(make_stack_sink(s, {.format = DType::bf16}, {.shape = {6, 4}}, 3), ContractError);
  Sink sink = make_stack_sink(s, spec, {.shape = {6, 4}, .dtype = DType::f32}, 3);
  EXPECT_THROW(quantize_stack(s, Stored::plain(s.zeros({6, 5}, DType::f32)), sink), ContractError);
  EXPECT_THROW(gemm(s, {.a = sink.codes.rows, .b = sink.codes.rows, .d = s.zeros({6, 6}, DType::f32)}), ContractError);
}

}  // namespace
}  // namespace octet::ops
