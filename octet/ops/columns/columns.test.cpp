#include "octet/ops/columns/columns.hpp"

#include <gtest/gtest.h>

#include "octet/ops/columns/columns.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

TEST(Columns, ThoseNamedAreCopiedAndNoOthersAreTouched) {
  struct Range {
    std::int64_t rows, from_columns, from, to_columns, to, columns;
  };
  for (const Range& r :
       {Range{5, 7, 2, 4, 1, 3}, Range{1, 1, 0, 1, 0, 1}, Range{300, 96, 64, 32, 0, 32}, Range{3, 4, 1, 5, 2, 0}, Range{0, 8, 0, 8, 4, 4}})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (auto* const kernel : testing::kernels(cpu::v3::copy_columns, cpu::v4::copy_columns)) {
        Stream s(Device::cpu);
        const Tensor from = gaussian_tensor(s, {r.rows, r.from_columns}, 1, dtype),
                     to = gaussian_tensor(s, {r.rows, r.to_columns}, 2, dtype), before = s.empty(to.shape, dtype);
        copy(s, to, before);
        kernel({.from = from, .from_column = r.from, .to = to, .to_column = r.to, .columns = r.columns});
        for (std::int64_t t = 0; t < r.rows; ++t)
          for (std::int64_t c = 0; c < r.to_columns; ++c) {
            const bool inside = c >= r.to && c < r.to + r.columns;
            const float wanted = inside ? value_at(from, t * r.from_columns + r.from + c - r.to) : value_at(before, t * r.to_columns + c);
            ASSERT_EQ(value_at(to, t * r.to_columns + c), wanted) << t << " " << c;
          }
      }
}

TEST(Columns, RefusesColumnsThatATensorDoesNotHave) {
  Stream s(Device::null);
  const Tensor a = s.empty({4, 8}, DType::f32), b = s.empty({4, 6}, DType::f32), half = s.empty({4, 8}, DType::bf16);
  EXPECT_NO_THROW(copy_columns(s, {.from = a, .from_column = 2, .to = b, .columns = 6}));
  EXPECT_THROW(copy_columns(s, {.from = a, .from_column = 3, .to = b, .columns = 6}), ContractError);
  EXPECT_THROW(copy_columns(s, {.from = a, .to = b, .columns = 7}), ContractError);
  EXPECT_THROW(copy_columns(s, {.from = a, .from_column = -1, .to = b, .columns = 1}), ContractError);
  EXPECT_THROW(copy_columns(s, {.from = a, .to = half, .columns = 1}), ContractError);
  EXPECT_THROW(copy_columns(s, {.from = a, .to = s.empty({3, 8}, DType::f32), .columns = 1}), ContractError);
}

}  // namespace
}  // namespace octet::ops
