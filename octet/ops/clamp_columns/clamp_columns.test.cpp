#include "octet/ops/clamp_columns/clamp_columns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "octet/ops/clamp_columns/clamp_columns.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr float limit = 0.75f, nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

struct Range {
  std::int64_t rows, from_columns, from, to_columns, to, columns;
};
const std::vector<Range> ranges = {
    {5, 7, 2, 4, 1, 3}, {1, 1, 0, 1, 0, 1}, {30, 96, 64, 40, 8, 32}, {3, 21, 1, 21, 2, 19}, {0, 8, 0, 8, 4, 4}};

/// Values on both sides of both limits, at them, and none.
Tensor values(Stream& s, const Shape& shape, DType dtype) {
  const Tensor t = gaussian_tensor(s, shape, 1, dtype);
  const float special[] = {limit, -limit, nan, infinity, -infinity, 0, -0.0f};
  for (std::int64_t i = 0; i < t.count(); i += 3) testing::put(t, i, special[i / 3 % 7]);
  return t;
}

bool bit(const Tensor& outside, std::int64_t t, std::int64_t c) { return (outside.u8()[t * outside.shape[1] + c / 8] >> c % 8 & 1) != 0; }

TEST(ClampColumns, KeepsThoseNamedWithinTheLimitsAndMarksWhatWasOutside) {
  for (const Range& r : ranges)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (auto* const kernel : testing::kernels(cpu::v3::clamp_columns, cpu::v4::clamp_columns)) {
        Stream s(Device::cpu);
        const Tensor from = values(s, {r.rows, r.from_columns}, dtype), to = gaussian_tensor(s, {r.rows, r.to_columns}, 2, dtype),
                     before = s.empty(to.shape, dtype), outside = s.empty({r.rows, clamp_bytes(r.columns)}, DType::u8);
        copy(s, to, before);
        const CopyColumns columns{.from = from, .from_column = r.from, .to = to, .to_column = r.to, .columns = r.columns};
        kernel({.columns = columns, .limit = limit, .outside = outside});
        for (std::int64_t t = 0; t < r.rows; ++t)
          for (std::int64_t c = 0; c < r.to_columns; ++c) {
            const float got = value_at(to, t * r.to_columns + c);
            if (c < r.to || c >= r.to + r.columns) {
              ASSERT_EQ(got, value_at(before, t * r.to_columns + c)) << t << " " << c;
              continue;
            }
            const float x = value_at(from, t * r.from_columns + r.from + c - r.to);
            if (std::isnan(x)) ASSERT_TRUE(std::isnan(got));
            else ASSERT_EQ(got, std::fmin(limit, std::fmax(-limit, x))) << t << " " << c;
            ASSERT_EQ(bit(outside, t, c - r.to), std::fabs(x) > limit) << x;
          }
        kernel({.columns = columns, .limit = limit, .outside = {}});  // without bits
      }
}

TEST(ClampColumns, BackwardClearsTheGradientWhereAValueWasOutsideAlsoInPlace) {
  for (const Range& r : ranges)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (auto* const kernel : testing::kernels(cpu::v3::clamp_columns_backward, cpu::v4::clamp_columns_backward)) {
        Stream s(Device::cpu);
        const Tensor x = values(s, {r.rows, r.from_columns}, dtype), dy = gaussian_tensor(s, x.shape, 3, dtype),
                     dx = s.zeros({r.rows, r.to_columns}, dtype), outside = s.empty({r.rows, clamp_bytes(r.columns)}, DType::u8);
        clamp_columns(s, {.columns = {.from = x, .from_column = r.from, .to = x, .to_column = r.from, .columns = r.columns},
                          .limit = limit,
                          .outside = outside});
        kernel({.columns = {.from = dy, .from_column = r.from, .to = dx, .to_column = r.to, .columns = r.columns}, .outside = outside});
        kernel({.columns = {.from = dy, .from_column = r.from, .to = dy, .to_column = r.from, .columns = r.columns}, .outside = outside});
        const Tensor whole = gaussian_tensor(s, x.shape, 3, dtype);
        for (std::int64_t t = 0; t < r.rows; ++t)
          for (std::int64_t c = 0; c < r.columns; ++c) {
            const float d = value_at(whole, t * r.from_columns + r.from + c), wanted = bit(outside, t, c) ? 0 : d;
            ASSERT_EQ(value_at(dx, t * r.to_columns + r.to + c), wanted) << t << " " << c;
            ASSERT_EQ(value_at(dy, t * r.from_columns + r.from + c), wanted) << t << " " << c;
          }
      }
}

TEST(ClampColumns, RefusesOtherShapesTypesAndLimits) {
  Stream s(Device::null);
  const Tensor x = s.empty({4, 20}, DType::bf16), outside = s.empty({4, 2}, DType::u8);
  const ClampColumns good{.columns = {.from = x, .to = x, .columns = 16}, .limit = 1, .outside = outside};
  EXPECT_NO_THROW(clamp_columns(s, good));
  EXPECT_NO_THROW(clamp_columns_backward(s, {.columns = good.columns, .outside = outside}));
  const auto refused = [&](auto change) {
    ClampColumns bad = good;
    change(bad);
    EXPECT_THROW(clamp_columns(s, bad), ContractError);
  };
  refused([](ClampColumns& a) { a.limit = 0; });
  refused([](ClampColumns& a) { a.limit = nan; });
  refused([](ClampColumns& a) { a.columns.columns = 17; });
  refused([](ClampColumns& a) { a.columns.from_column = 5; });
  refused([&](ClampColumns& a) { a.columns.to = s.empty({4, 20}, DType::f32); });
  refused([&](ClampColumns& a) { a.outside = s.empty({4, 2}, DType::e4m3); });
  EXPECT_THROW(clamp_columns_backward(s, {.columns = good.columns, .outside = {}}), ContractError);
}

}  // namespace
}  // namespace octet::ops
