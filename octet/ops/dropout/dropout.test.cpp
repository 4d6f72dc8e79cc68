#include "octet/ops/dropout/dropout.hpp"

#include <gtest/gtest.h>

#include "octet/numerics/philox.hpp"
#include "octet/ops/dropout/dropout.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr std::uint64_t key = 0x123456789ABCDEFu;
constexpr std::int64_t seed = 5, update = 7, batch = 3;

Tensor numbers_of(Stream& s) {
  const Tensor out = s.empty({dropout_numbers}, DType::i64);
  const std::int64_t values[] = {seed, update, batch};
  upload(s, values, out);
  return out;
}

// By the formula of dropout.hpp.
bool kept(std::int64_t token, std::int64_t column, double p) {
  const RandomWords words =
      philox(key ^ std::uint64_t(seed), std::uint64_t(token), std::uint64_t(update) << 24 | std::uint64_t(column / 4));
  return double(words.w[column % 4]) >= p * 0x1p32;
}

TEST(Dropout, KeepsWhatItsDrawsSayInBothOrdersAndTypes) {
  constexpr std::int64_t sequence = 6, tokens = 2 * sequence, columns = 11, first = 5;
  constexpr double p = 0.375;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool last : {false, true})
      for (const bool accumulate : {false, true})
        for (auto* const kernel : testing::kernels(cpu::v3::dropout, cpu::v4::dropout)) {
          Stream s(Device::cpu);
          const Shape shape = last ? Shape{columns, tokens} : Shape{tokens, columns};
          const Tensor x = gaussian_tensor(s, shape, 1, dtype), y = gaussian_tensor(s, shape, 2, dtype), before = s.empty(shape, dtype);
          copy(s, y, before);
          kernel({.x = x,
                  .y = y,
                  .tokens_last = last,
                  .accumulate = accumulate,
                  .probability = p,
                  .key = key,
                  .numbers = numbers_of(s),
                  .sequence = sequence,
                  .first_column = first});
          for (std::int64_t t = 0; t < tokens; ++t)
            for (std::int64_t c = 0; c < columns; ++c) {
              const std::int64_t i = last ? c * tokens + t : t * columns + c;
              const float value = kept(batch * tokens + t, first + c, p) ? float(1 / (1 - p)) * value_at(x, i) : 0.0f;
              const float sum = accumulate ? value_at(before, i) + value : value;
              const float wanted = dtype == DType::f32    ? sum
                                   : dtype == DType::bf16 ? to_float(to_bf16(sum))
                                                          : to_float(from_float<Fp16>(sum));
              ASSERT_EQ(value_at(y, i), wanted) << t << " " << c;
            }
        }
}

// Rows of three sequences, of which each of four members has three quarters.
TEST(Dropout, AMemberDropsInItsRowsWhatOneDropsThere) {
  constexpr std::int64_t sequence = 8, columns = 12;
  constexpr int members = 4;
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {3 * sequence, columns}, 1), whole = s.empty(x.shape, DType::f32),
               parts = s.empty(x.shape, DType::f32);
  const std::int64_t own = x.shape[0] / members;
  const Dropout all{.x = x, .y = whole, .probability = 0.5, .key = key, .numbers = numbers_of(s), .sequence = sequence};
  dropout(s, all);
  for (int m = 0; m < members; ++m) {
    Dropout part = all;
    part.x = x.rows(m * own, own), part.y = parts.rows(m * own, own), part.member = m, part.members = members;
    dropout(s, part);
  }
  EXPECT_EQ(testing::bytes(parts), testing::bytes(whole));
}

// Two segments of a sequence, and a part of the columns.
TEST(Dropout, AMemberDropsWhatOneDropsThere) {
  constexpr std::int64_t sequence = 16, columns = 12;
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {2 * sequence, columns}, 1), whole = s.empty(x.shape, DType::f32), numbers = numbers_of(s);
  dropout(s, {.x = x, .y = whole, .probability = 0.5, .key = key, .numbers = numbers, .sequence = sequence});
  for (int member = 0; member < 2; ++member) {
    const SequencePart part = SequencePart::of_member(sequence, member, 2);
    const Tensor own = s.empty({sequence, columns / 2}, DType::f32), y = s.empty(own.shape, DType::f32);
    const auto place = [&](std::int64_t t, std::int64_t c) {
      return (t / 8 * sequence + part.place(t % 8, 8)) * columns + columns / 2 + c;
    };
    for (std::int64_t t = 0; t < sequence; ++t)
      for (std::int64_t c = 0; c < columns / 2; ++c) own.f32()[t * columns / 2 + c] = x.f32()[place(t, c)];
    dropout(s, {.x = own,
                .y = y,
                .probability = 0.5,
                .key = key,
                .numbers = numbers,
                .sequence = sequence / 2,
                .part = part,
                .first_column = columns / 2});
    for (std::int64_t t = 0; t < sequence; ++t)
      for (std::int64_t c = 0; c < columns / 2; ++c) ASSERT_EQ(y.f32()[t * columns / 2 + c], whole.f32()[place(t, c)]) << t << " " << c;
  }
}

// The mean of n draws has a deviation of sqrt(p / (1 - p) / n) for ones.
TEST(Dropout, KeepsTheMeanAndDrawsAnewForEachUpdateBatchAndSeed) {
  constexpr std::int64_t n = 256;
  for (const double p : {0.05, 0.5, 0.9}) {
    Stream s(Device::cpu);
    const Tensor x = s.empty({n, n}, DType::f32), numbers = numbers_of(s);
    std::fill_n(x.f32(), x.count(), 1.0f);
    std::vector<std::vector<float>> all;
    for (int changed = -1; changed < dropout_numbers; ++changed) {
      if (changed >= 0) ++numbers.as<std::int64_t>()[changed];
      const Tensor y = s.empty(x.shape, DType::f32);
      dropout(s, {.x = x, .y = y, .probability = p, .key = key, .numbers = numbers, .sequence = n});
      all.emplace_back(y.f32(), y.f32() + y.count());
      double sum = 0;
      for (const float v : all.back()) sum += v;
      EXPECT_NEAR(sum / double(x.count()), 1, 5 * std::sqrt(p / (1 - p) / double(x.count()))) << p;
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        double same = 0;
        for (std::size_t k = 0; k < all[i].size(); ++k) same += all[i][k] == all[j][k];
        const double expected = p * p + (1 - p) * (1 - p), count = double(x.count());
        EXPECT_NEAR(same / count, expected, 5 * std::sqrt(expected * (1 - expected) / count)) << p << ": draws are independent";
      }
  }
}

TEST(Dropout, RefusesOtherShapesTypesAndProbabilities) {
  Stream s(Device::null);
  const Tensor x = s.empty({8, 4}, DType::f32), numbers = s.empty({dropout_numbers}, DType::i64);
  const Dropout good{.x = x, .y = x, .probability = 0.1, .numbers = numbers, .sequence = 4};
  EXPECT_NO_THROW(dropout(s, good));
  const auto refused = [&](auto change) {
    Dropout bad = good;
    change(bad);
    EXPECT_THROW(dropout(s, bad), ContractError);
  };
  refused([](Dropout& d) { d.probability = 1; });
  refused([](Dropout& d) { d.probability = -0.1; });
  refused([](Dropout& d) { d.sequence = 3; });
  refused([](Dropout& d) { d.sequence = 0; });
  refused([](Dropout& d) { d.numbers = {}; });
  refused([&](Dropout& d) { d.y = s.empty({4, 8}, DType::f32); });
  refused([&](Dropout& d) { d.y = s.empty({8, 4}, DType::bf16); });
}

}  // namespace
}  // namespace octet::ops
