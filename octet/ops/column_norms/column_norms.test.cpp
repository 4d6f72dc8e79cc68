#include <gtest/gtest.h>

#include "octet/ops/column_norms/column_norms.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/sinks.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::bounded, testing::gaussian_tensor, testing::values;

constexpr float eps = 1e-5f;

// Heads of queries and keys, norms of whole rows of them, and widths that are no whole registers; columns between and behind are others'.
struct Heads {
  std::int64_t rows, columns, width, first_count, second, second_width, second_count;
};
constexpr Heads shapes[] = {{5, 800, 64, 7, 448, 64, 2}, {3, 96, 48, 1, 64, 24, 1}, {2, 40, 7, 3, 24, 5, 2}, {0, 8, 4, 1, 4, 4, 1}};

TEST(ColumnNorms, GroupsAreWithinTheirErrorBoundAndOtherColumnsAreNotTouched) {
  for (const Heads& h : shapes)
    for (const DType dtype : testing::activation_dtypes)
      for (const float offset : {0.0f, 1.0f})
        for (auto* const kernel : testing::kernels(cpu::v3::column_norms, cpu::v4::column_norms)) {
          Stream s(Device::cpu);
          const Tensor x = gaussian_tensor(s, {h.rows, h.columns}, 1, dtype, 3), before = s.empty(x.shape, dtype),
                       w = gaussian_tensor(s, {h.width}, 2), other = gaussian_tensor(s, {h.second_width}, 3);
          copy(s, x, before);
          kernel({.x = x, .ranges = {{{w, 0, h.first_count}, {other, h.second, h.second_count}}}, .eps = eps, .offset = offset});
          for (std::int64_t r = 0; r < h.rows; ++r) {
            std::vector<Bounded> wanted = bounded(values(before, r * h.columns, h.columns));
            const auto norm = [&](const Tensor& weight, std::int64_t first, std::int64_t count) {
              const std::int64_t D = weight.shape[0];
              for (std::int64_t g = 0; g < count; ++g) {
                const std::vector<Bounded> v(wanted.begin() + first + g * D, wanted.begin() + first + (g + 1) * D);
                rmsnorm_row(BoundedLane{}, D, v.data(), weight.f32(), offset, eps, &wanted[std::size_t(first + g * D)]);
              }
            };
            norm(w, 0, h.first_count), norm(other, h.second, h.second_count);
            testing::expect_within(x, r * h.columns, wanted, "x");
          }
        }
}

TEST(ColumnNorms, ColumnsThatXDoesNotHaveAreRefused) {
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {2, 16}, 1), w = gaussian_tensor(s, {8}, 2);
  EXPECT_THROW(column_norms(s, {.x = x, .ranges = {{{w, 0, 2}, {w, 16, 1}}}, .eps = eps}), ContractError);
  EXPECT_THROW(column_norms(s, {.x = x, .ranges = {{{w, 0, 3}, {w, 8, 0}}}, .eps = eps}), ContractError);
}

}  // namespace
}  // namespace octet::ops
