#include "octet/train/step/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::train {
namespace {

constexpr std::uint64_t draws = 20000;

std::map<std::int32_t, double> shares(const std::vector<float>& logits, const Sampling& s) {
  std::map<std::int32_t, double> out;
  for (std::uint64_t i = 0; i < draws; ++i) out[sample(logits, s, i)] += 1.0 / double(draws);
  return out;
}

// Five standard deviations of a share of `draws` draws.
double tolerance(double p) { return 5 * std::sqrt(p * (1 - p) / double(draws)); }

TEST(Sampling, APenaltyMakesEachTokenOfTheTextLessLikelyOnce) {
  std::vector<float> logits = {2, -3, 0, 5, -0.5f};
  const std::vector<std::int32_t> text = {1, 0, 1, 2, 0};
  penalize(logits, text, 2);
  EXPECT_EQ(logits, (std::vector<float>{1, -6, 0, 5, -0.5f}));
  penalize(logits, text, 1);
  EXPECT_EQ(logits, (std::vector<float>{1, -6, 0, 5, -0.5f}));
  EXPECT_THROW(penalize(logits, text, 0), ContractError);
  EXPECT_THROW(penalize(logits, std::vector<std::int32_t>{5}, 2), ContractError);
}

TEST(Sampling, TakesTheMostLikelyTokenAtTemperatureZero) {
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(sample(std::vector{0.5f, 3.0f, -1.0f, 2.9f}, {.temperature = 0}, i), 1);
}

TEST(Sampling, PrefersTheLowerIdOfEqualLogits) {
  EXPECT_EQ(sample(std::vector{1.0f, 2.0f, 2.0f}, {.temperature = 0}, 0), 1);
  EXPECT_EQ(sample(std::vector{1.0f, 2.0f, 2.0f}, {.temperature = 1, .top_k = 1}, 0), 1);
}

TEST(Sampling, CandidatesOfALargeVocabularyAreItsMostLikelyTokens) {
  // Equal logits far apart and at the limit of candidates, zeros of both signs, minus infinity, and a last block that is not whole.
  for (const std::size_t n : {1000u, 20001u}) {
    std::vector<float> logits;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = float(philox(3, i).w[0] % 97) - 90;
      logits.push_back(i % 11 == 0 ? -INFINITY : i % 13 == 0 ? -0.0f : value);
    }
    std::vector<std::int32_t> wanted(n);
    std::iota(wanted.begin(), wanted.end(), 0);
    std::ranges::stable_sort(wanted, [&](std::int32_t a, std::int32_t b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
    EXPECT_EQ(sample(logits, {.temperature = 0}, 0), wanted[0]);
    for (const std::int64_t k : {1, 3, 40}) {
      std::set<std::int32_t> ids;
      for (std::uint64_t i = 0; i < 1000; ++i) ids.insert(sample(logits, {.temperature = 1000, .top_k = k}, i));
      EXPECT_EQ(ids, std::set<std::int32_t>(wanted.begin(), wanted.begin() + k)) << n << " " << k;
    }
  }
}

TEST(Sampling, FiniteLogitsAreToldFromOthersAtEveryPlace) {
  std::vector<float> logits(300, -3e38f);
  logits[7] = 3e38f;
  EXPECT_TRUE(are_finite(logits));
  for (const float odd : {float(NAN), -float(NAN), INFINITY, -INFINITY})
    for (const std::size_t at : {0u, 100u, 299u}) {
      std::vector<float> x = logits;
      x[at] = odd;
      EXPECT_FALSE(are_finite(x));
      if (odd == -INFINITY) {
        EXPECT_EQ(sample(x, {.temperature = 0}, 0), 7);
      } else {
        EXPECT_THROW(sample(x, {.temperature = 0}, 0), ContractError);
      }
    }
}

TEST(Sampling, DrawsByTheSoftmaxOfLogitsOverTemperature) {
  // Logits T log p at temperature T: probabilities p.
  const std::vector<double> p = {0.1, 0.6, 0.3};
  std::vector<float> logits;
  for (const double x : p) logits.push_back(float(0.7 * std::log(x)));
  const auto found = shares(logits, {.temperature = 0.7, .top_k = 0});
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(found.at(std::int32_t(i)), p[i], tolerance(p[i]));
}

TEST(Sampling, LimitsTheCandidatesByTopK) {
  const auto found = shares({std::log(0.1f), std::log(0.6f), std::log(0.3f)}, {.temperature = 1, .top_k = 2});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(1), 2.0 / 3, tolerance(2.0 / 3));
  EXPECT_NEAR(found.at(2), 1.0 / 3, tolerance(1.0 / 3));
}

TEST(Sampling, KeepsTheFewestTokensThatReachTopP) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.6f), std::log(0.25f), std::log(0.05f)};
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_k = 0, .top_p = 0.5}).size(), 1u);
  const auto two = shares(logits, {.temperature = 1, .top_k = 0, .top_p = 0.8});
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(2), 0.25 / 0.85, tolerance(0.25 / 0.85));
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_k = 0, .top_p = 0.9}).size(), 3u);
  EXPECT_EQ(shares(logits, {.temperature = 1, .top_k = 0, .top_p = 1}).size(), 4u);
}

TEST(Sampling, AppliesTopPToWhatTopKLeaves) {
  // Of 0.4, 0.3, 0.3 top_k keeps 0.4 and 0.3: 0.57 and 0.43 of the candidates. The first alone reaches 0.55, not of the whole.
  EXPECT_EQ(shares({std::log(0.4f), std::log(0.3f), std::log(0.3f)}, {.temperature = 1, .top_k = 2, .top_p = 0.55}).size(), 1u);
}

TEST(Sampling, RepeatsWithTheSeed) {
  const std::vector<float> logits(100, 0.0f);
  int same = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Sampling one{.temperature = 1, .top_k = 0, .seed = 1};
    EXPECT_EQ(sample(logits, one, i), sample(logits, one, i));
    same += int(sample(logits, one, i) == sample(logits, {.temperature = 1, .top_k = 0, .seed = 2}, i));
  }
  EXPECT_LT(same, 20);  // 2 of 200 by chance
}

TEST(Sampling, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(sample({}, {}, 0), ContractError);
  EXPECT_THROW(sample(std::vector{1.0f, NAN}, {}, 0), ContractError);
}

}  // namespace
}  // namespace octet::train
