#include <gtest/gtest.h>

#include "octet/ops/swiglu/swiglu.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/experts.hpp"
#include "tests/testing/saved.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::Dual, testing::NumberLane;
using testing::bounded, testing::gaussian_tensor, testing::map_of, testing::MapCase, testing::plain_sink, testing::values;

constexpr MapCase some_maps[] = {{0, 1, 2, 8},
                                 {1, 1, 1, 8},
                                 {7, 2, 3, 8, testing::Choice::all_the_same},
                                 {60, 2, 4, 16, testing::Choice::only_some},
                                 {129, 2, 4, 16, testing::Choice::skewed}};

// x, whose rows without a token are NaN.
Tensor poisoned_rows(Stream& s, const ExpertMap& map, std::int64_t cols, std::uint64_t seed, DType dtype, double scale = 1) {
  const Tensor x = gaussian_tensor(s, {map.rows(), cols}, seed, dtype, scale);
  for (std::int64_t r = 0; r < map.rows(); ++r)
    for (std::int64_t i = 0; i < cols; ++i)
      if (map.source.as<std::int32_t>()[r] < 0) testing::put(x, r * cols + i, NAN);
  return x;
}

struct Kernels {
  decltype(&cpu::v3::weighted_swiglu_forward) forward;
  decltype(&cpu::v3::weighted_swiglu_backward) backward;
};

// One row against its formula with error bounds. Where a value lies near a limit, its side is that of the value itself: x is exact.
template <bool limited>
void expect_row(const WeightedSwigluBackward& a, const Tensor& y, const Tensor& dx, std::int64_t r) {
  const std::int64_t cols = y.shape[1], choice = a.map.source.as<std::int32_t>()[r];
  if (choice < 0) {
    for (std::int64_t i = 0; i < cols; ++i) ASSERT_EQ(value_at(y, r * cols + i), 0);
    for (std::int64_t i = 0; i < 2 * cols; ++i) ASSERT_EQ(value_at(dx, r * 2 * cols + i), 0);
    return;
  }
  const float weight = a.w.f32()[choice];
  const auto in = bounded(values(a.x.values, r * 2 * cols, 2 * cols)), d = bounded(values(a.dy, r * cols, cols));
  std::vector<Bounded> out(std::size_t(cols), Bounded{}), back(std::size_t(2 * cols), Bounded{});
  Bounded sum;
  const BoundedLane lane;
  weighted_swiglu_row<limited>(lane, cols, a.limit, weight, in.data(), out.data());
  weighted_swiglu_backward_row<limited>(lane, cols, a.limit, weight, d.data(), in.data(), back.data(), sum);
  testing::expect_within(y, r * cols, out, "y");
  testing::expect_within(dx, r * 2 * cols, back, "dx");
  testing::expect_within(a.dw, choice, {lane.sum(sum)}, "dw");
}

TEST(WeightedSwiGlu, IsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const MapCase& c : some_maps)
    for (const std::int64_t cols : {1, 7, 33, 129})
      for (const DType dtype : testing::activation_dtypes)
        for (const float limit : {0.0f, 2.0f})
          for (const Kernels isa : testing::kernels(Kernels{cpu::v3::weighted_swiglu_forward, cpu::v3::weighted_swiglu_backward},
                                                    Kernels{cpu::v4::weighted_swiglu_forward, cpu::v4::weighted_swiglu_backward})) {
            Stream s(Device::cpu);
            const ExpertMap map = map_of(s, c);
            const Saved x = poisoned_rows(s, map, 2 * cols, 1, dtype, 3);
            const Tensor dy = poisoned_rows(s, map, cols, 2, dtype), w = gaussian_tensor(s, map.row.shape, 3),
                         dw = s.empty(w.shape, DType::f32);
            Sink y = plain_sink(s, dy.shape, dtype), dx = plain_sink(s, x.shape, dtype);
            const WeightedSwigluBackward a{.dy = dy, .x = x, .w = w, .map = map, .limit = limit, .dw = dw};
            isa.forward(x, w, map, limit, y);
            isa.backward(a, dx, {});
            for (std::int64_t r = 0; r < map.rows(); ++r) {
              if (limit > 0) expect_row<true>(a, y.plain, dx.plain, r);
              else expect_row<false>(a, y.plain, dx.plain, r);
              if (::testing::Test::HasFatalFailure()) return;
            }
          }
}

TEST(WeightedSwiGlu, BackwardIsTheDerivativeOfForwardAlsoBeyondTheLimit) {
  const NumberLane<Dual> lane;
  constexpr float limit = 10, weight = 0.75f;
  for (const double gate : {-200.0, -20.0, -1.5, 0.25, 3.0, 9.5, 10.5, 60.0})
    for (const double up : {-30.0, -9.5, 0.5, 9.5, 11.0})
      for (const int which : {0, 1, 2}) {
        Dual x[2] = {gate, up}, y = 0, dx[2] = {}, dw = 0;
        const Dual dy = 0.5;
        weighted_swiglu_backward_row<true>(lane, 1, limit, weight, &dy, x, dx, dw);
        if (which < 2) x[which].slope = 1;
        weighted_swiglu_row<true>(lane, 1, limit, weight, x, &y);
        const double wanted = 0.5 * (which < 2 ? y.slope : y.value / double(weight));
        EXPECT_NEAR(which < 2 ? dx[which].value : dw.value, wanted, 1e-12 * (1 + std::fabs(wanted))) << gate << " " << up << " " << which;
      }
}

TEST(WeightedSwiGlu, WithoutAWeightIsSwiGluOfEveryRow) {
  Stream s(Device::cpu);
  const ExpertMap map = map_of(s, {60, 2, 4, 16});
  const Tensor x = gaussian_tensor(s, {map.rows(), 66}, 1, DType::bf16, 4), w = testing::tensor_of(s, std::vector<float>(120, 1), {60, 2});
  Sink y = plain_sink(s, {map.rows(), 33}, DType::bf16), plain = plain_sink(s, {map.rows(), 33}, DType::bf16),
       limited = plain_sink(s, {map.rows(), 33}, DType::bf16);
  swiglu_forward(s, x, plain);
  weighted_swiglu_forward(s, x, w, map, 0, y);
  weighted_swiglu_forward(s, x, w, map, 1e30f, limited);
  for (std::int64_t r = 0; r < map.rows(); ++r)
    for (std::int64_t i = 0; i < 33; ++i) {
      ASSERT_EQ(value_at(y.plain, r * 33 + i), map.source.as<std::int32_t>()[r] < 0 ? 0.0f : value_at(plain.plain, r * 33 + i));
      ASSERT_EQ(value_at(y.plain, r * 33 + i), value_at(limited.plain, r * 33 + i));
    }
}

TEST(WeightedSwiGlu, ANanPassesTheLimit) {
  Stream s(Device::cpu);
  const ExpertMap map = map_of(s, {2, 1, 1, 1});
  const Tensor x = testing::tensor_of(s, {NAN, 1, 1, NAN}, {2, 2}), w = testing::tensor_of(s, {1, 1}, {2, 1}),
               dy = testing::tensor_of(s, {1, 1}, {2, 1}), dw = s.empty({2, 1}, DType::f32);
  Sink y = plain_sink(s, {2, 1}, DType::f32), dx = plain_sink(s, {2, 2}, DType::f32);
  weighted_swiglu_forward(s, x, w, map, 10, y);
  weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .limit = 10, .dw = dw}, dx);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::isnan(y.plain.f32()[i]) && std::isnan(dw.f32()[i])) << i;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(i == 3 || std::isnan(dx.plain.f32()[i])) << i;
}

TEST(WeightedSwiGlu, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const std::int64_t cols : {7, 129})
    for (const DType dtype : testing::quantized_dtypes)
      for (const float limit : {0.0f, 2.0f}) {
        Stream data(Device::cpu);
        const ExpertMap map = map_of(data, {50, 2, 4, 16, testing::Choice::only_some});
        const Saved x = poisoned_rows(data, map, 2 * cols, 1, dtype, 3);
        const Tensor dy = poisoned_rows(data, map, cols, 2, dtype), w = gaussian_tensor(data, {50, 2}, 3),
                     dw = data.empty({50, 2}, DType::f32);
        testing::expect_fused_equals_unfused(dy.shape, dtype, [&](Stream& s, Sink& y) { weighted_swiglu_forward(s, x, w, map, limit, y); });
        testing::expect_fused_equals_unfused(x.shape, dtype, [&](Stream& s, Sink& dx) {
          weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .limit = limit, .dw = dw}, dx);
        });
      }
}

TEST(WeightedSwiGlu, SavedCodesAreReadAsTheirValuesAndRowsWithoutATokenAreNotMeasured) {
  for (const DType dtype : testing::quantized_dtypes) {
    Stream s(Device::cpu);
    const std::int64_t cols = 64;
    const ExpertMap map = map_of(s, {50, 2, 4, 16, testing::Choice::only_some});
    const Tensor x = poisoned_rows(s, map, 2 * cols, 1, dtype, 3), dy = poisoned_rows(s, map, cols, 2, dtype),
                 w = gaussian_tensor(s, {50, 2}, 3);
    const Tensor dw[2] = {s.empty({50, 2}, DType::f32), s.empty({50, 2}, DType::f32)};
    Sink y = plain_sink(s, dy.shape, dtype), codes = saved_sink(s, x, saved_spec(), Lifetime::run);
    weighted_swiglu_forward(s, x, w, map, 0, y, &codes);
    const Tensor decoded = s.empty(x.shape, dtype);
    dequantize(s, codes.codes.rows, decoded);
    Sink dx[2] = {plain_sink(s, x.shape, dtype), plain_sink(s, x.shape, dtype)};
    const Saved saved[2] = {Saved(codes.codes.rows, dtype), Saved(decoded)};
    for (int i = 0; i < 2; ++i) weighted_swiglu_backward(s, {.dy = dy, .x = saved[i], .w = w, .map = map, .dw = dw[i]}, dx[i]);
    EXPECT_EQ(testing::bytes(dx[0].plain), testing::bytes(dx[1].plain));
    EXPECT_EQ(testing::bytes(dw[0]), testing::bytes(dw[1]));

    QuantizeHealth health;
    QuantizeSpec measured = saved_spec();
    measured.health = &health, measured.amax = s.zeros({1}, DType::f32);
    Sink again = saved_sink(s, x, measured, Lifetime::run);
    weighted_swiglu_forward(s, x, w, map, 0, y, &again);
    EXPECT_EQ(health.nonfinite, 0);
    EXPECT_TRUE(std::isfinite(*measured.amax.f32()));
  }
}

TEST(WeightedSwiGlu, TheBitsDoNotDependOnThreads) {
  std::vector<std::vector<std::uint8_t>> seen;
  for (const int threads : {1, 3}) {
    const testing::WithThreads with(threads);
    Stream s(Device::cpu);
    const ExpertMap map = map_of(s, {129, 2, 4, 16, testing::Choice::skewed});
    const Tensor x = gaussian_tensor(s, {map.rows(), 130}, 1), dy = gaussian_tensor(s, {map.rows(), 65}, 2),
                 w = gaussian_tensor(s, {129, 2}, 3), dw = s.empty({129, 2}, DType::f32);
    Sink dx = plain_sink(s, x.shape, DType::f32);
    weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .limit = 3, .dw = dw}, dx);
    seen.push_back(testing::bytes(dx.plain));
    const auto of_weights = testing::bytes(dw);
    seen.back().insert(seen.back().end(), of_weights.begin(), of_weights.end());
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(WeightedSwiGlu, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const ExpertMap map = map_of(s, {40, 2, 8, 16});
    const Tensor x = s.zeros({map.rows(), 64}, DType::bf16), dy = s.zeros({map.rows(), 32}, DType::bf16), w = s.zeros({40, 2}, DType::f32);
    Sink y = plain_sink(s, dy.shape, DType::bf16), dx = plain_sink(s, x.shape, DType::bf16);
    weighted_swiglu_forward(s, x, w, map, 0, y);
    weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .dw = w}, dx);
  });
}

TEST(WeightedSwiGlu, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const ExpertMap map = empty_expert_map(s, 4, 2, 8, 16, Lifetime::run);
  const Tensor x = s.empty({map.rows(), 8}, DType::f32), dy = s.empty({map.rows(), 4}, DType::f32), w = s.empty({4, 2}, DType::f32);
  Sink y = plain_sink(s, dy.shape, DType::f32), dx = plain_sink(s, x.shape, DType::f32);
  EXPECT_THROW(weighted_swiglu_forward(s, x, w, map, 0, dx), ContractError);
  EXPECT_THROW(weighted_swiglu_forward(s, dy, w, map, 0, y), ContractError);
  EXPECT_THROW(weighted_swiglu_forward(s, x, w, map, -1, y), ContractError);
  EXPECT_THROW(weighted_swiglu_forward(s, x, s.empty({4, 3}, DType::f32), map, 0, y), ContractError);
  EXPECT_THROW(weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .dw = x}, dx), ContractError);
  EXPECT_THROW(weighted_swiglu_backward(s, {.dy = dy, .x = x, .w = w, .map = map, .dw = w}, y), ContractError);
}

}  // namespace
}  // namespace octet::ops
