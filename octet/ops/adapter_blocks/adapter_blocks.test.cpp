#include "octet/ops/adapter_blocks/adapter_blocks.hpp"

#include <gtest/gtest.h>

#include "octet/ops/adapter_blocks/adapter_blocks.kernels.hpp"
#include "octet/ops/quantize/operand_values.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

struct Form {
  std::int64_t out, rank;
  std::vector<RowBlock> blocks;
  std::int64_t rows() const {
    std::int64_t n = 0;
    for (const RowBlock& b : blocks) n += b.rows;
    return n;
  }
  std::int64_t columns() const { return rank * std::int64_t(blocks.size()); }
};
const Form forms[] = {{6, 1, {{0, 6}}}, {9, 3, {{0, 4}, {4, 2}, {6, 3}}}, {300, 8, {{10, 200}, {250, 50}}}};

// Where the value of row `row` and column `c` of the narrow matrix is in the wide one.
std::int64_t place(const Form& f, std::int64_t row, std::int64_t c) {
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    if (row < f.blocks[b].rows) return (f.blocks[b].first + row) * f.columns() + std::int64_t(b) * f.rank + c;
    row -= f.blocks[b].rows;
  }
  return -1;
}

TEST(AdapterBlocks, SpreadPutsEachBlockInItsRowsAndColumnsAndZeroElsewhere) {
  for (const Form& f : forms)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      Stream s(Device::cpu);
      const Tensor from = gaussian_tensor(s, {f.rows(), f.rank}, 1, dtype), to = gaussian_tensor(s, {f.out, f.columns()}, 2, dtype);
      spread_blocks(s, from, f.blocks, 0.5f, to);
      std::vector<double> wanted(std::size_t(to.count()), 0.0);
      for (std::int64_t r = 0; r < f.rows(); ++r)
        for (std::int64_t c = 0; c < f.rank; ++c) wanted[std::size_t(place(f, r, c))] = 0.5 * double(value_at(from, r * f.rank + c));
      for (std::int64_t i = 0; i < to.count(); ++i) ASSERT_EQ(value_at(to, i), wanted[std::size_t(i)]) << i;
    }
}

TEST(AdapterBlocks, CollectTakesEachBlockBackAndStoresOrAdds) {
  for (const Form& f : forms)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool accumulate : {false, true})
        for (auto* const kernel : testing::kernels(cpu::v3::collect_blocks, cpu::v4::collect_blocks)) {
          Stream s(Device::cpu);
          const Tensor from = gaussian_tensor(s, {f.out, f.columns()}, 1), to = gaussian_tensor(s, {f.rows(), f.rank}, 2, dtype),
                       before = s.empty(to.shape, dtype);
          copy(s, to, before);
          RowBlocks all{.count = int(f.blocks.size())};
          std::copy(f.blocks.begin(), f.blocks.end(), all.blocks);
          kernel(from, all, 2.0f, accumulate, to);
          for (std::int64_t r = 0; r < f.rows(); ++r)
            for (std::int64_t c = 0; c < f.rank; ++c) {
              const std::int64_t i = r * f.rank + c;
              const float sum = (accumulate ? value_at(before, i) : 0.0f) + 2.0f * from.f32()[place(f, r, c)];
              ASSERT_EQ(value_at(to, i), dtype == DType::f32 ? sum : to_float(to_bf16(sum))) << i;
            }
        }
}

TEST(AdapterBlocks, RefuseOtherShapesTypesAndBlocks) {
  Stream s(Device::null);
  const Tensor narrow = s.empty({6, 2}, DType::f32), wide = s.empty({8, 4}, DType::f32);
  const std::vector<RowBlock> good{{0, 2}, {3, 4}};
  EXPECT_NO_THROW(spread_blocks(s, narrow, good, 1, wide));
  EXPECT_NO_THROW(collect_blocks(s, wide, good, 1, false, narrow));
  for (const std::vector<RowBlock>& bad : {std::vector<RowBlock>{}, {{0, 4}, {3, 2}}, {{3, 4}, {0, 2}}, {{0, 2}, {3, 3}}, {{0, 2}, {5, 4}}})
    EXPECT_THROW(spread_blocks(s, narrow, bad, 1, wide), ContractError);
  EXPECT_THROW(spread_blocks(s, narrow, good, 1, s.empty({8, 4}, DType::bf16)), ContractError);
  EXPECT_THROW(collect_blocks(s, s.empty({8, 4}, DType::bf16), good, 1, false, narrow), ContractError);
  EXPECT_THROW(collect_blocks(s, s.empty({8, 6}, DType::f32), good, 1, false, narrow), ContractError);
}

// Operands as a layer saves them, K-contiguous or transposed views, decoded or not.
TEST(OperandValues, AreThoseOfCodesTimesTheirDescales) {
  for (const ScaleRule rule : {ScaleRule::quotient, ScaleRule::power_of_two})
    for (const ScaleBlock block : {ScaleBlock{}, ScaleBlock{1, 0}, ScaleBlock{1, 128}})
      for (const bool for_gemm : {false, true})
        for (const Lifetime region : {Lifetime::scratch, Lifetime::run}) {
          Stream s(Device::cpu);
          const Tensor x = gaussian_tensor(s, {48, 160}, 1, DType::bf16);
          QuantizeSpec spec;
          spec.format = DType::e4m3, spec.rule = rule, spec.rows = spec.cols = block;
          Sink sink = make_sink(
              s, spec,
              {.shape = x.shape, .dtype = x.dtype, .cols = true, .rows_region = region, .cols_region = region, .for_gemm = for_gemm});
          quantize(s, x, sink);
          for (const Quantized& q : {sink.codes.rows, sink.codes.cols}) {
            const Quantized values = operand_values(s, q, DType::f32), turned = transposed(values);
            ASSERT_EQ(values.rows(), q.rows());
            for (std::int64_t r = 0; r < q.rows(); ++r)
              for (std::int64_t c = 0; c < q.cols(); ++c) {
                ASSERT_EQ(value_at(values, r, c), value_at(q, r, c)) << r << " " << c;
                ASSERT_EQ(value_at(turned, c, r), value_at(q, r, c)) << r << " " << c;
              }
          }
        }
}

}  // namespace
}  // namespace octet::ops
