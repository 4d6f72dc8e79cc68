#include "octet/ops/gather_rows/gather_rows.hpp"

#include <gtest/gtest.h>

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_codes/gather_codes.hpp"
#include "tests/testing/experts.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor, testing::map_cases, testing::map_of, testing::MapCase, testing::plain_sink;

TEST(GatherRows, CopiesTheTokenOfEachRowAndZerosElsewhere) {
  for (const MapCase& c : map_cases())
    for (const DType dtype : testing::activation_dtypes) {
      Stream s(Device::cpu);
      const ExpertMap map = map_of(s, c);
      const Tensor x = gaussian_tensor(s, {c.tokens, 5}, 1, dtype);
      Sink y = plain_sink(s, {map.rows(), 5}, dtype);
      gather_rows(s, x, map, y);
      for (std::int64_t r = 0; r < map.rows(); ++r) {
        const std::int64_t choice = map.source.as<std::int32_t>()[r];
        for (std::int64_t i = 0; i < 5; ++i)
          ASSERT_EQ(value_at(y.plain, r * 5 + i), choice < 0 ? 0.0f : value_at(x, choice / c.choices * 5 + i));
      }
    }
}

TEST(GatherRows, AFusedQuantizeGivesTheBitsOfASecondPass) {
  for (const std::int64_t cols : {7, 129})
    for (const DType dtype : testing::quantized_dtypes) {
      Stream data(Device::cpu);
      const ExpertMap map = map_of(data, {50, 2, 4, 16, testing::Choice::only_some});
      const Tensor x = gaussian_tensor(data, {50, cols}, 1, dtype);
      testing::expect_fused_equals_unfused({map.rows(), cols}, dtype, [&](Stream& s, Sink& y) { gather_rows(s, x, map, y); });
    }
}

// The operands of x, codes and descales, then the maximum.
std::vector<std::vector<std::uint8_t>> gathered(Stream& s, QuantizeSpec spec, const SinkRequest& want, const Tensor& x,
                                                const ExpertMap& map, bool encoded) {
  const Tensor amax = s.zeros({1}, DType::f32);
  spec.amax = amax;
  Sink y = make_sink(s, spec, want);
  for (const Quantized* q : {&y.codes.rows, &y.codes.cols})
    for (const Tensor& t : {q->codes, q->descales})
      if (t && t.data != spec.descale.data) std::memset(t.data, 0xA5, t.bytes());
  encoded ? gather_encoded(s, x, map, y) : gather_rows(s, x, map, y);
  std::vector<std::vector<std::uint8_t>> out{testing::bytes(amax)};
  for (const Quantized* q : {&y.codes.rows, &y.codes.cols})
    for (const Tensor& t : {q->codes, q->descales}) out.push_back(t ? testing::bytes(t) : std::vector<std::uint8_t>());
  return out;
}

// In every orientation and form of operands, and where a row's codes do not depend on others by way of the tokens' codes.
TEST(GatherCodes, HaveTheBitsOfRowsThatAreEncodedAfterwards) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const DType dtype : testing::quantized_dtypes)
      for (const MapCase& c : {MapCase{50, 2, 4, 16, testing::Choice::only_some}, {150, 3, 4, 128}, {0, 2, 4, 16}, {9, 1, 4, 16}})
        for (const std::int64_t cols : {7, 264}) {
          Stream s(Device::cpu, {.gemm_compute = compute});
          const ExpertMap map = map_of(s, c);
          const Tensor x = gaussian_tensor(s, {c.tokens, cols}, 1, dtype);
          for (const QuantizeSpec& spec : testing::quantized_specs(s))
            for (const bool rows : {true, false})
              for (const bool columns : {true, false})
                for (const bool for_gemm : {true, false}) {
                  if (!rows && !columns) continue;
                  const SinkRequest want{.shape = {map.rows(), cols}, .dtype = dtype, .rows = rows, .cols = columns, .for_gemm = for_gemm};
                  ASSERT_EQ(gathered(s, spec, want, x, map, true), gathered(s, spec, want, x, map, false))
                      << to_text(spec.rows) << rows << columns << for_gemm << to_text(compute) << to_text(dtype) << cols;
                }
        }
}

TEST(GatherCodes, CountEachTokenOnce) {
  Stream s(Device::cpu);
  const ExpertMap map = map_of(s, {40, 3, 8, 16});
  QuantizeHealth health;
  QuantizeSpec spec{.format = DType::e4m3, .rows = {1, 32}, .cols = {1, 32}};
  spec.health = &health;
  Sink y = make_sink(s, spec, {.shape = {map.rows(), 64}, .dtype = DType::bf16});
  gather_encoded(s, gaussian_tensor(s, {40, 64}, 1, DType::bf16), map, y);
  EXPECT_EQ(health.values, 40 * 64);
}

TEST(CombineRows, AddsTheRowsOfATokenInOrder) {
  for (const MapCase& c : map_cases())
    for (const DType dtype : testing::activation_dtypes)
      for (const bool add : {false, true}) {
        Stream s(Device::cpu);
        const std::int64_t cols = 19;
        const ExpertMap map = map_of(s, c);
        const Tensor x = gaussian_tensor(s, {map.rows(), cols}, 1, dtype), y = gaussian_tensor(s, {c.tokens, cols}, 2, dtype),
                     before = s.empty(y.shape, dtype);
        for (std::int64_t r = 0; r < map.rows(); ++r)  // rows without a token are not read
          if (map.source.as<std::int32_t>()[r] < 0) testing::put(x, r * cols, NAN);
        copy(s, y, before);
        combine_rows(s, x, map, y, add);
        for (std::int64_t t = 0; t < c.tokens; ++t)
          for (std::int64_t i = 0; i < cols; ++i) {
            float sum = 0;
            for (std::int64_t k = 0; k < c.choices; ++k) sum += value_at(x, map.row.as<std::int32_t>()[t * c.choices + k] * cols + i);
            if (add) sum = value_at(before, t * cols + i) + sum;
            const Tensor wanted = testing::tensor_of(s, {sum}, {1}, dtype);
            ASSERT_EQ(value_at(y, t * cols + i), value_at(wanted, 0));
          }
      }
}

TEST(CombineRows, IsTheGradientOfGatherRows) {
  Stream s(Device::cpu);
  const ExpertMap map = map_of(s, {40, 3, 8, 16});
  const Tensor x = gaussian_tensor(s, {40, 8}, 1), dy = gaussian_tensor(s, {map.rows(), 8}, 2), dx = s.empty({40, 8}, DType::f32);
  Sink y = plain_sink(s, {map.rows(), 8}, DType::f32);
  gather_rows(s, x, map, y);
  combine_rows(s, dy, map, dx);
  double left = 0, right = 0;
  for (std::int64_t i = 0; i < y.plain.count(); ++i) left += double(y.plain.f32()[i]) * dy.f32()[i];
  for (std::int64_t i = 0; i < x.count(); ++i) right += double(x.f32()[i]) * dx.f32()[i];
  EXPECT_NEAR(left, right, 1e-3);
}

TEST(GatherRows, AndItsGradientRefuseWhatDoesNotFit) {
  Stream s(Device::null);
  const ExpertMap map = empty_expert_map(s, 4, 2, 8, 16, Lifetime::run);
  const Tensor x = s.empty({4, 8}, DType::f32), rows = s.empty({map.rows(), 8}, DType::f32);
  Sink y = plain_sink(s, {map.rows(), 8}, DType::f32), narrow = plain_sink(s, {map.rows(), 7}, DType::f32);
  EXPECT_THROW(gather_rows(s, x, map, narrow), ContractError);
  EXPECT_THROW(gather_rows(s, rows, map, y), ContractError);
  Sink codes = make_sink(s, {.format = DType::e4m3}, {.shape = {map.rows(), 7}, .dtype = DType::f32});
  EXPECT_THROW(gather_encoded(s, x, map, codes), ContractError);
  EXPECT_THROW(combine_rows(s, x, map, x), ContractError);
  EXPECT_THROW(combine_rows(s, rows, map, s.empty({4, 8}, DType::bf16)), ContractError);
}

TEST(GatherRows, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const ExpertMap map = map_of(s, {40, 2, 8, 16});
    Sink y = plain_sink(s, {map.rows(), 8}, DType::bf16);
    gather_rows(s, s.zeros({40, 8}, DType::bf16), map, y);
    Sink codes = make_sink(s, {.format = DType::e4m3}, {.shape = {map.rows(), 8}, .dtype = DType::bf16});
    gather_encoded(s, s.zeros({40, 8}, DType::bf16), map, codes);
    combine_rows(s, y.plain, map, s.zeros({40, 8}, DType::bf16));
  });
}

}  // namespace
}  // namespace octet::ops
