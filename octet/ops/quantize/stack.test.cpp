#include "octet/ops/quantize/stack.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/from_codes.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.hpp"
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

// Known scales are twice those of the data: some values saturate.
void know(Stream& s, QuantizeSpec& spec, const Stored& x) {
  QuantizeSpec from_data = spec;
  Sink sink = make_sink(s, from_data, {.shape = x.shape(), .dtype = x.value_type(), .rows_region = Lifetime::run});
  quantize(s, x, sink);
  const std::int64_t n = sink.codes.rows.descales.count();
  spec.scale = s.empty({n}, DType::f32, Lifetime::run), spec.descale = s.empty({n}, DType::f32, Lifetime::run);
  for (std::int64_t e = 0; e < n; ++e) {
    spec.descale.f32()[e] = sink.codes.rows.descales.f32()[e] / 2;
    spec.scale.f32()[e] = 1 / spec.descale.f32()[e];
  }
}

void expect_matrices(Stream& s, const Stored& x, const QuantizeSpec& spec, SinkRequest want) {
  Sink all = make_sink(s, spec, want);
  quantize(s, x, all);
  for (std::int64_t e = 0; e < E; ++e) {
    Stored one = x;
    one.codes = x.codes.rows(e * N, N), want.shape = {N, K};
    Sink alone = make_sink(s, spec.of_matrix(e), want);
    quantize(s, one, alone);
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t k = 0; k < K; ++k) {
        if (want.rows) {
          ASSERT_EQ(value_at(all.codes.rows, e * N + n, k), value_at(alone.codes.rows, n, k)) << e << " " << n << " " << k;
        }
        if (want.cols) {
          ASSERT_EQ(value_at(all.codes.cols, k, e * N + n), value_at(alone.codes.cols, k, n)) << e << " " << n << " " << k;
        }
      }
  }
}

TEST(QuantizeStack, EveryMatrixIsQuantizedAsATensorByItself) {
  for (const DType compute : {DType::f32, gemm_compute()})
    for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16})
      for (const ScaleRule rule : {ScaleRule::quotient, ScaleRule::power_of_two})
        for (const bool known : {false, true})
          for (const bool for_gemm : {false, true})
            for (const auto [rows, cols] : {std::array{true, false}, std::array{false, true}, std::array{true, true}}) {
              Stream s(Device::cpu, {.gemm_compute = compute});
              const Stored x = stack(s, storage);
              QuantizeSpec spec{.format = DType::e4m3, .rule = rule};
              spec.scale_each(N);
              if (known) know(s, spec, x);
              expect_matrices(s, x, spec, {.shape = x.shape(), .dtype = x.value_type(), .rows = rows, .cols = cols, .for_gemm = for_gemm});
            }
}

TEST(QuantizeStack, MeasuresWhatItsMatricesMeasure) {
  Stream s(Device::cpu);
  const Stored x = stack(s, Storage::f32);
  QuantizeHealth health[2];
  const Tensor amax = s.zeros({2 * E}, DType::f32);
  QuantizeSpec spec{.format = DType::e4m3, .amax = amax.rows(0, E), .health = &health[0]};
  spec.scale_each(N);
  Sink all = make_sink(s, spec, {.shape = x.shape(), .dtype = DType::f32});
  quantize(s, x, all);
  spec.amax = amax.rows(E, E), spec.health = &health[1];
  for (std::int64_t e = 0; e < E; ++e) {
    Sink alone = make_sink(s, spec.of_matrix(e), {.shape = {N, K}, .dtype = DType::f32});
    quantize(s, x.codes.rows(e * N, N), alone);
    EXPECT_EQ(all.codes.rows.descales.f32()[e], *alone.codes.rows.descales.f32());
    EXPECT_EQ(amax.f32()[e], amax.f32()[E + e]);
  }
  EXPECT_EQ(health[0].values, health[1].values);
  EXPECT_EQ(health[0].flushed, health[1].flushed);
  EXPECT_EQ(health[0].scale_min, health[1].scale_min);
  EXPECT_EQ(health[0].scale_max, health[1].scale_max);
}

// Matrices of 80 and 272 rows have other limits than tiles of 128; slices cut through rows and matrices.
TEST(QuantizeStack, SlicesGiveItsCodesAndMaxima) {
  for (const std::int64_t rows : {16, 80, 256, 272}) {
    Stream s(Device::cpu);
    const Shape shape{E * rows, 64};
    const Tensor x = testing::gaussian_tensor(s, shape, 2);
    for (std::int64_t i = 0; i < x.count(); ++i) x.f32()[i] *= std::ldexp(1.0f, int(i / (rows * 64)) * 5);
    QuantizeHealth health[2];
    const Tensor amax = s.zeros({2 * E}, DType::f32), scales = s.zeros({E}, DType::f32), top = s.zeros({E}, DType::f32),
                 descales = s.zeros({E}, DType::f32), codes = s.zeros(shape, DType::e4m3);
    QuantizeSpec spec{.format = DType::e4m3, .amax = amax.rows(0, E), .health = &health[0], .measure_noise = true};
    spec.scale_each(rows);
    ASSERT_TRUE(can_quantize_slices(spec, shape));
    Sink all = make_sink(s, spec, {.shape = shape, .dtype = DType::f32});
    quantize(s, x, all);
    spec.amax = amax.rows(E, E), spec.health = &health[1];
    std::vector<StoredSlice> slices;
    const Tensor flat = x.reshaped({x.count()});
    for (std::int64_t first = 0, part = 1408; first < x.count(); first += part)
      slices.push_back({Stored::plain(flat.rows(first, std::min(part, x.count() - first))), shape, first});
    for (const StoredSlice& slice : slices) {
      slice_maxima(s, slice, spec.rows, top);
      for (std::int64_t e = 0; e < E; ++e) scales.f32()[e] = std::max(scales.f32()[e], top.f32()[e]);
    }
    scales_of_maxima(s, spec, DType::f32, scales, scales, descales);
    for (const StoredSlice& slice : slices)
      quantize_slice(s, slice, spec, scales, codes.reshaped({x.count()}).rows(slice.first, slice.stored.count()));
    EXPECT_EQ(testing::bytes(codes), testing::bytes(all.codes.rows.codes)) << rows;
    EXPECT_EQ(testing::bytes(descales), testing::bytes(all.codes.rows.descales)) << rows;
    EXPECT_EQ(testing::bytes(amax.rows(0, E)), testing::bytes(amax.rows(E, E))) << rows;
    EXPECT_EQ(health[0].saturated, health[1].saturated);
    EXPECT_EQ(health[0].flushed, health[1].flushed);
    EXPECT_EQ(health[0].scale_min, health[1].scale_min);
    EXPECT_NEAR(health[0].noise, health[1].noise, 1e-9 * health[1].noise);
  }
}

// Operands from codes are those from values.
TEST(QuantizeStack, OperandsFromItsCodesAreTheSame) {
  constexpr std::int64_t rows = 48;
  for (const DType compute : {DType::f32, gemm_compute()})
    for (const Lifetime region : {Lifetime::scratch, Lifetime::run})
      for (const bool left : {false, true}) {
        Stream s(Device::cpu, {.gemm_compute = compute});
        const Tensor x = testing::gaussian_tensor(s, {E * rows, 64}, 3);
        QuantizeSpec spec{.format = DType::e4m3};
        spec.scale_each(rows);
        Sink codes = make_sink(s, spec, {.shape = x.shape, .dtype = DType::f32, .rows_region = Lifetime::run});
        quantize(s, x, codes);
        SinkRequest want{.shape = x.shape,
                         .dtype = DType::f32,
                         .cols = true,
                         .rows_region = region,
                         .cols_region = region,
                         .for_gemm = true,
                         .cols_left = left};
        Sink wanted = make_sink(s, spec, want);
        quantize(s, x, wanted);
        want.codes = codes.codes.rows;
        Sink made = make_sink(s, spec, want);
        fill_from_codes(s, codes.codes.rows, made);
        for (std::int64_t r = 0; r < x.shape[0]; ++r)
          for (std::int64_t c = 0; c < x.shape[1]; ++c) {
            ASSERT_EQ(value_at(made.codes.rows, r, c), value_at(wanted.codes.rows, r, c)) << r << " " << c;
            ASSERT_EQ(value_at(made.codes.cols, c, r), value_at(wanted.codes.cols, c, r)) << r << " " << c;
          }
      }
}

TEST(QuantizeStack, StoresNoCopyOfTheValues) {
  Stream s(Device::null, {.device = Device::cuda});
  const Scope scope(s);
  QuantizeSpec spec{.format = DType::e4m3};
  spec.scale_each(64);
  const Sink sink = make_sink(s, spec, {.shape = {E * 64, 64}, .cols = true});
  EXPECT_FALSE(sink.plain || sink.maxima);
  EXPECT_EQ(sink.codes.rows.descales.shape, Shape{E});
  EXPECT_EQ(sink.codes.cols.descales.data, sink.codes.rows.descales.data);
}

TEST(QuantizeStack, RefusesWhatDoesNotFit) {
  Stream s(Device::cpu), gpu(Device::null, {.device = Device::cuda});
  QuantizeSpec spec{.format = DType::e4m3}, mx{.format = DType::e4m3, .rule = ScaleRule::e8m0};
  spec.scale_each(2), mx.scale_each(2);
  EXPECT_THROW(make_sink(s, mx, {.shape = {6, 4}}), ContractError) << "scales of stacks are f32";
  EXPECT_THROW(make_sink(s, spec, {.shape = {7, 4}}), ContractError);
  EXPECT_THROW(make_sink(gpu, spec, {.shape = {6, 4}}), ContractError) << "packs of values lie in one row";
  Sink sink = make_sink(s, spec, {.shape = {6, 4}, .dtype = DType::f32});
  EXPECT_THROW(quantize(s, Stored::plain(s.zeros({6, 5}, DType::f32)), sink), ContractError);
  EXPECT_THROW(quantize(s, s.zeros({6, 4}, DType::bf16), sink), ContractError);
  EXPECT_THROW(gemm(s, {.a = sink.codes.rows, .b = sink.codes.rows, .d = s.zeros({6, 6}, DType::f32)}), ContractError);
  QuantizeSpec one = spec;
  one.scale = one.descale = s.zeros({1}, DType::f32);
  EXPECT_THROW(make_sink(s, one, {.shape = {6, 4}}), ContractError) << "three matrices have three scales";
}

}  // namespace
}  // namespace octet::ops
