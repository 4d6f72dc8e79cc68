#include "octet/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

TEST(Tensor, RowsAreAViewOfTheSameBytes) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor t{values.data(), {4, 3, 2}, DType::f32};
  const Tensor part = t.rows(1, 2);
  EXPECT_EQ(part.shape, Shape({2, 3, 2}));
  EXPECT_EQ(part.f32(), values.data() + 6);
  part.f32()[0] = -1;
  EXPECT_EQ(values[6], -1);
  EXPECT_EQ(t.rows(4, 0).count(), 0) << "an empty part at the end";
  const Tensor line{values.data(), {24}, DType::f32};
  EXPECT_EQ(line.rows(5, 3).f32()[0], 5) << "elements of a tensor of rank 1";
}

TEST(Tensor, RowsCountInUnitsOfTheType) {
  for (const DType type : {DType::e4m3, DType::bf16, DType::f32, DType::f64}) {
    std::vector<std::byte> bytes(6 * 8);
    const Tensor t{bytes.data(), {3, 2}, type};
    EXPECT_EQ(t.bytes(), 6 * size_of(type));
    EXPECT_EQ(t.rows(2, 1).as<std::byte>() - bytes.data(), std::ptrdiff_t(4 * size_of(type))) << name(type);
  }
}

TEST(Tensor, RowsOutsideOfItAreRefused) {
  float value[6];
  const Tensor t{value, {3, 2}, DType::f32};
  for (const auto& [begin, n] : {std::pair<int, int>{-1, 1}, {0, 4}, {3, 1}, {1, -1}})
    EXPECT_THROW((void)t.rows(begin, n), ContractError) << begin << " " << n;
  EXPECT_TRUE(testing::has(testing::error_of<ContractError>([&] { (void)t.rows(2, 2); }), "rows: [2, 4) is outside [3, 2]"));
  EXPECT_THROW((void)Tensor({value, {}, DType::f32}).rows(0, 1), ContractError) << "a scalar has no rows";
}

TEST(Tensor, ReshapedKeepsTheValuesAndTheirNumber) {
  float values[12] = {};
  const Tensor t{values, {3, 4}, DType::f32};
  EXPECT_EQ(t.reshaped({2, 6}).data, t.data);
  EXPECT_EQ(t.reshaped({12}).shape, Shape({12}));
  EXPECT_THROW((void)t.reshaped({5, 2}), ContractError);
}

TEST(Tensor, ValueAtDecodesEveryType) {
  const float f32 = 1.5f;
  const Bf16 bf16 = to_bf16(-3.0f);
  const std::uint8_t one_e4m3 = 0x38, one_e5m2 = 0x3C, half_e8m0 = 126;  // the encodings of 1, 1 and 2^-1
  const std::int32_t i32 = 1;
  EXPECT_EQ(value_at({const_cast<float*>(&f32), {1}, DType::f32}, 0), 1.5f);
  EXPECT_EQ(value_at({const_cast<Bf16*>(&bf16), {1}, DType::bf16}, 0), -3.0f);
  EXPECT_EQ(value_at({const_cast<std::uint8_t*>(&one_e4m3), {1}, DType::e4m3}, 0), 1.0f);
  EXPECT_EQ(value_at({const_cast<std::uint8_t*>(&one_e5m2), {1}, DType::e5m2}, 0), 1.0f);
  EXPECT_EQ(value_at({const_cast<std::uint8_t*>(&half_e8m0), {1}, DType::e8m0}, 0), 0.5f);
  EXPECT_THROW((void)value_at({const_cast<std::int32_t*>(&i32), {1}, DType::i32}, 0), ContractError);
}

TEST(ScaleBlock, PrintsAsReportsNameIt) {
  EXPECT_EQ(to_text(ScaleBlock{}), "tensor");
  EXPECT_EQ(to_text(ScaleBlock{1, 0}), "row");
  EXPECT_EQ(to_text(ScaleBlock{1, 128}), "1x128");
  EXPECT_EQ(to_text(ScaleBlock{128, 128}), "128x128");
}

// Worked out by hand from the scale modes of cuBLASLt and their padding, for 130 rows of 272 values: 2 and 3 blocks of 128, 9 of 32.
TEST(DescaleLayout, IsThatOfTheGemmLibrary) {
  EXPECT_EQ(descale_shape({}, DType::f32, 130, 272), Shape({1})) << "SCALAR_32F";
  EXPECT_EQ(descale_shape({1, 0}, DType::f32, 130, 272), Shape({130})) << "OUTER_VEC_32F";
  EXPECT_EQ(descale_shape({1, 128}, DType::f32, 130, 272), Shape({3, 132})) << "VEC128_32F: along rows first, their number a multiple of 4";
  EXPECT_EQ(descale_shape({128, 128}, DType::f32, 130, 272), Shape({2, 4})) << "BLK128x128_32F: along K first, a multiple of 4";
  EXPECT_EQ(descale_shape({1, 32}, DType::e8m0, 130, 272), Shape({256, 12})) << "VEC32_UE8M0: tiles of 128 x 4";
  EXPECT_EQ(descale_shape({1, 128}, DType::f32, 0, 272), Shape({3, 0}));
  EXPECT_EQ(descale_shape({64, 0}, DType::f32, 130, 272), Shape({3})) << "matrices of a stack, of 64 whole rows";
  EXPECT_EQ(descale_shape({0, 64}, DType::f32, 130, 272), Shape({5})) << "their transpose";
  EXPECT_EQ(testing::error_of<ContractError>([] {
              (void)descale_shape({-1, 32}, DType::f32, 8, 8);
            }).substr(0, 39),
            "descale_shape: no layout for blocks of ");
}

// Whatever the layout is: every block has one place of its own, within the memory that the shape asks for.
TEST(DescaleLayout, GivesEveryBlockItsOwnPlaceWithinTheShape) {
  const struct {
    ScaleBlock block;
    DType type;
  } layouts[] = {{{}, DType::f32},         {{1, 0}, DType::f32},   {{1, 32}, DType::f32}, {{1, 128}, DType::f32},
                 {{128, 128}, DType::f32}, {{1, 32}, DType::e8m0}, {{1, 64}, DType::f32}};
  for (const auto& [block, type] : layouts)
    for (const std::int64_t rows : {1, 3, 128, 130, 300})
      for (const std::int64_t cols : {1, 31, 128, 257, 640}) {
        const std::int64_t size = descale_shape(block, type, rows, cols).count();
        const DescaleStride stride = descale_stride(block, type, rows, cols);
        const std::int64_t down = block.rows == 0 ? 1 : (rows + block.rows - 1) / block.rows,
                           across = block.cols == 0 ? 1 : (cols + block.cols - 1) / block.cols;
        std::set<std::int64_t> places;
        for (std::int64_t i = 0; i < down; ++i)
          for (std::int64_t j = 0; j < across; ++j) places.insert(i * stride.row_block + j * stride.col_block);
        EXPECT_EQ(std::int64_t(places.size()), down * across) << to_text(block) << " of " << rows << " x " << cols;
        EXPECT_GE(*places.begin(), 0);
        EXPECT_LT(*places.rbegin(), size) << to_text(block) << " of " << rows << " x " << cols;
      }
}

// 3 rows of 40 values, 2 blocks a row: x = code * descale, found through the padding of [2, 4] descales, which holds NaN.
TEST(Quantized, ValueAtMultipliesACodeByTheDescaleOfItsBlock) {
  constexpr std::uint8_t two = 0x40, minus_three = 0xC4;  // E4M3
  std::vector<std::uint8_t> codes(120, two);
  codes[1 * 40 + 35] = minus_three;
  std::vector<float> descales(8, std::numeric_limits<float>::quiet_NaN());
  const float by_row[2][3] = {{1, 10, 100}, {0.5f, 0.25f, 0.125f}};
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 3; ++i) descales[std::size_t(j * 4 + i)] = by_row[j][i];
  const Quantized q{.codes = {codes.data(), {3, 40}, DType::e4m3}, .descales = {descales.data(), {2, 4}, DType::f32}, .block = {1, 32}};
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 40; ++c)
      EXPECT_EQ(value_at(q, r, c), (r == 1 && c == 35 ? -3.0f : 2.0f) * by_row[c / 32][r]) << r << ", " << c;
}

TEST(Quantized, ATransposedViewIsReadTheOtherWayRound) {
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 0.0f);
  const Quantized q{.codes = {values.data(), {2, 3}, DType::f32}, .transposed = true};
  EXPECT_EQ(q.rows(), 3);
  EXPECT_EQ(q.cols(), 2);
  EXPECT_FALSE(q.eight_bit());
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < 2; ++c) EXPECT_EQ(value_at(q, r, c), values[std::size_t(c * 3 + r)]);
}

TEST(Quantized, IsEightBitWhereItsValuesStandForCodes) {
  std::uint8_t byte = 0;
  const Tensor code{&byte, {1, 1}, DType::e5m2}, value{&byte, {1, 1}, DType::bf16};
  EXPECT_TRUE(Quantized{.codes = code}.eight_bit());
  EXPECT_FALSE(Quantized{.codes = value}.eight_bit());
  EXPECT_TRUE((Quantized{.codes = value, .decoded = true}.eight_bit()));
  EXPECT_FALSE(bool(Quantized{}));
}

TEST(QTensor, OneMatrixIsBothOrientationsOfTheSameBytes) {
  Bf16 values[6], others[6];
  const Quantized rows{.codes = {values, {2, 3}, DType::bf16}};
  const Quantized view{.codes = {values, {2, 3}, DType::bf16}, .transposed = true};
  const Quantized copied{.codes = {others, {3, 2}, DType::bf16}};
  EXPECT_TRUE((QTensor{rows, view}.one_matrix()));
  EXPECT_FALSE((QTensor{rows, copied}.one_matrix()));
  EXPECT_FALSE((QTensor{rows, {}}.one_matrix()));
  EXPECT_FALSE((QTensor{{}, view}.one_matrix()));
  EXPECT_FALSE((QTensor{rows, rows}.one_matrix())) << "not transposed";
}

}  // namespace
}  // namespace octet
