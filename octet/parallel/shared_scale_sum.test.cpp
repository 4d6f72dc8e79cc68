#include "octet/parallel/shared_scale_sum.hpp"

#include <gtest/gtest.h>

#include "octet/comm/threads/threads.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::parallel {
namespace {

using comm::Communicator;

constexpr std::int64_t n = SharedScaleSum::fewest_values + 333;

std::vector<float> values_of(int rank, bool coherent) { return testing::gaussian(n, coherent ? 7 : std::uint64_t(rank) + 1); }

// What a step has done, of tensor 0.
struct Outcome {
  std::vector<double> x;
  double mu = 0;
  std::int64_t overflow = 0, underflow = 0;
};

Outcome run(int ranks, SumRoom room, bool coherent, int steps = 1) {
  Outcome out;
  comm::run_on_threads({.ranks = ranks}, [&](Communicator& c) {
    Stream s(Device::cpu);
    SharedScaleSum sum(s, ranks, {n}, room);
    const Tensor x = s.empty({n}, DType::f32, Lifetime::run);
    for (int i = 0; i < steps; ++i) {
      const std::vector<float> own = values_of(c.rank(), coherent);
      std::copy(own.begin(), own.end(), x.f32());
      sum.all_reduce(s, c, std::span(&x, 1));
    }
    if (c.rank() == ranks - 1)
      out = {testing::values(x), sum.mu().f32()[0], sum.overflow().as<std::int64_t>()[0], sum.underflow().as<std::int64_t>()[1]};
  });
  return out;
}

// Every rank has the same values, so sums are `ranks` times the codes: exact where they do not saturate.
TEST(SharedScaleSum, PostscaledSumsOverflowAndPrescaledValuesUnderflow) {
  const Outcome post = run(8, SumRoom::postscaled, true), pre = run(8, SumRoom::prescaled, true);
  EXPECT_GT(post.overflow, n / 100) << "values above an eighth of the largest code";
  EXPECT_EQ(pre.overflow == 0 || pre.overflow < 8, true) << "the maximum itself may have the largest code";
  EXPECT_GT(pre.underflow, post.underflow);
  const double amax = testing::gaussian(n, 7).empty() ? 0 : *std::max_element(post.x.begin(), post.x.end());
  EXPECT_LE(amax, 8.0);
}

TEST(SharedScaleSum, CountsAreThoseOfPlainLoops) {
  for (const SumRoom room : {SumRoom::prescaled, SumRoom::postscaled}) {
    const int ranks = 3;
    std::vector<std::vector<float>> own;
    float amax = 0;
    for (int r = 0; r < ranks; ++r) {
      own.push_back(values_of(r, false));
      for (const float v : own.back()) amax = std::max(amax, std::fabs(v));
    }
    const float descale = std::exp2(std::ceil(std::log2(amax / E4M3::max))) / (room == SumRoom::prescaled ? 1.0f / 3 : 1.0f);
    std::int64_t overflow = 0, underflow = 0;
    std::vector<double> wanted;
    for (std::int64_t i = 0; i < n; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) {
        const float x = own[std::size_t(r)][std::size_t(i)], code = decode<E4M3>(encode<E4M3>(x * (1 / descale)));
        underflow += x != 0 && code == 0;
        sum += code;
      }
      const std::uint8_t code = encode<E4M3>(sum);
      overflow += (code & 0x7F) == E4M3::max_code;
      wanted.push_back(decode<E4M3>(code) * descale);
    }
    const Outcome got = run(ranks, room, false);
    EXPECT_EQ(got.x, wanted) << name(room);
    EXPECT_EQ(got.overflow, overflow) << name(room);
    EXPECT_EQ(got.underflow, underflow) << name(room);
  }
}

// Two ranks have a tensor, or each of four has half of it, with the exchange of its half beside.
TEST(SharedScaleSum, PartsOfATensorHaveTheSumsOfTheWholeOne) {
  const std::int64_t half = n / 2 - n / 2 % storage_block;  // less than fewest_values
  std::vector<double> whole, parts[2];
  float mu_of_whole = 0, mu_of_parts = 0;
  std::int64_t overflow_of_whole = 0, overflow_of_parts = 0;
  const auto values = [](int rank, std::int64_t first, std::int64_t count) {
    const std::vector<float> all = values_of(rank, true);
    std::vector<float> out(all.begin() + first, all.begin() + first + count);
    if (first > 0) out[0] = 9;  // the maximum is in one of the parts
    return out;
  };
  comm::run_on_threads({.ranks = 2}, [&](Communicator& c) {
    Stream s(Device::cpu);
    SharedScaleSum sum(s, 2, {2 * half}, SumRoom::adapted_at_zero);
    std::vector<float> all = values(c.rank(), 0, half), second = values(c.rank(), half, half);
    all.insert(all.end(), second.begin(), second.end());
    const Tensor x = testing::tensor_of(s, all, {2 * half});
    sum.all_reduce(s, c, std::span(&x, 1));
    if (c.rank() == 0)
      whole = testing::values(x), mu_of_whole = sum.mu().f32()[0], overflow_of_whole = sum.overflow().as<std::int64_t>()[0];
  });
  comm::run_on_threads({.ranks = 4}, [&](Communicator& c) {
    Stream s(Device::cpu);
    comm::SelfCommunicator alone;
    const int part = c.rank() % 2;
    const auto sharers = c.split(part, c.rank() / 2, 2), others = c.split(c.rank() / 2, part, 2);
    SharedScaleSum sum(s, 2, {{half, 2 * half}}, SumRoom::adapted_at_zero, {*others, alone});
    const Tensor x = testing::tensor_of(s, values(c.rank() / 2, part * half, half), {half});
    sum.all_reduce(s, *sharers, std::span(&x, 1));
    EXPECT_TRUE(sum.scales(0)) << "the whole tensor is large enough";
    if (c.rank() < 2) parts[part] = testing::values(x);
    if (c.rank() == 3) mu_of_parts = sum.mu().f32()[0], overflow_of_parts = sum.overflow().as<std::int64_t>()[0];
  });
  parts[0].insert(parts[0].end(), parts[1].begin(), parts[1].end());
  EXPECT_EQ(parts[0], whole);
  EXPECT_EQ(mu_of_parts, mu_of_whole);
  EXPECT_EQ(overflow_of_parts, overflow_of_whole);
  EXPECT_GT(overflow_of_whole, 0);
}

TEST(SharedScaleSum, MuFindsTheRoomThatCoherentSumsNeed) {
  const Outcome first = run(4, SumRoom::adapted_at_zero, true), later = run(4, SumRoom::adapted_at_zero, true, 6);
  EXPECT_EQ(first.mu, 0.5);
  EXPECT_LE(later.overflow, n / 100'000);
  EXPECT_GE(later.mu, 0.25 * 0.99) << "a quarter is enough for four equal values";
  EXPECT_LE(later.mu, 0.51);
}

TEST(SharedScaleSum, SmallTensorsAreSummedInTheirOwnType) {
  comm::run_on_threads({.ranks = 2}, [](Communicator& c) {
    Stream s(Device::cpu);
    SharedScaleSum sum(s, 2, {5, n}, SumRoom::adapted_below);
    const Tensor x[] = {testing::tensor_of(s, {1, 2, 3, 1e-6f, 1e6f}, {5}), s.zeros({n}, DType::f32)};
    sum.all_reduce(s, c, x);
    EXPECT_EQ(testing::values(x[0]), (std::vector<double>{2, 4, 6, 2 * double(1e-6f), 2e6}));
    EXPECT_EQ(sum.mu().f32()[0], 1);
    EXPECT_EQ(c.traffic(comm::Collective::all_reduce).calls, 4) << "maxima, the small tensor, two tables of counts";
  });
}

TEST(SharedScaleSum, RefusesOtherSizes) {
  comm::run_on_threads({.ranks = 1}, [](Communicator& c) {
    Stream s(Device::null);
    SharedScaleSum sum(s, 1, {5}, SumRoom::prescaled);
    const Tensor x = s.empty({6}, DType::f32);
    EXPECT_THROW(sum.all_reduce(s, c, std::span(&x, 1)), ContractError);
    EXPECT_THROW(sum.all_reduce(s, c, {}), ContractError);
  });
}

}  // namespace
}  // namespace octet::parallel
