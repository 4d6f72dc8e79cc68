#include "octet/ops/route/route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "octet/ops/route/route.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/experts.hpp"

namespace octet::ops {
namespace {

using testing::Dual, testing::gaussian_tensor;
using Score = Routing::Score;
using GroupScore = Routing::GroupScore;

struct Routed {
  Tensor logits, bias, chosen, weights, scores;
};
Routed route(Stream& s, const Routing& r, const Tensor& logits, const Tensor& bias = {}) {
  const std::int64_t T = logits.shape[0];
  Routed o{logits, bias, s.empty({T, r.choices}, DType::i32), s.empty({T, r.choices}, DType::f32), s.empty(logits.shape, DType::f32)};
  route_forward(s, r, {.logits = logits, .bias = bias, .chosen = o.chosen, .weights = o.weights, .scores = o.scores});
  return o;
}

// The routers of published models, at E experts and K choices.
std::vector<Routing> routers(std::int64_t experts, std::int64_t choices) {
  std::vector<Routing> out{{.choices = choices},
                           {.choices = choices, .normalize = true, .scaling = 1.5f},
                           {.score = Score::sigmoid, .choices = choices, .normalize = true, .floor = 1e-20f, .scaling = 2.5f}};
  if (experts % 8 == 0 && experts > 8) {
    out.push_back({.choices = choices, .groups = 8, .kept_groups = 3, .scaling = 16});
    out.push_back({.score = Score::sigmoid,
                   .group_score = GroupScore::two_largest,
                   .choices = choices,
                   .groups = 8,
                   .kept_groups = 4,
                   .normalize = true,
                   .floor = 1e-20f,
                   .scaling = 2.5f});
  }
  return out;
}

// p in double, from the formula.
std::vector<double> scores_of(Score score, const std::vector<double>& u) {
  std::vector<double> p;
  double sum = 0;
  const double most = *std::max_element(u.begin(), u.end());
  for (const double x : u) p.push_back(score == Score::sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x - most)), sum += p.back();
  if (score == Score::softmax)
    for (double& x : p) x /= sum;
  return p;
}

// The experts by descending rank, of equal ranks by index, without those of groups that are not kept.
std::vector<std::int32_t> order_of(const Routing& r, const std::vector<float>& rank) {
  const auto experts = std::int64_t(rank.size()), size = experts / r.groups;
  std::vector<std::int64_t> groups(std::size_t(r.groups), 0);
  std::iota(groups.begin(), groups.end(), 0);
  const auto strength = [&](std::int64_t g) {
    std::vector<float> of(rank.begin() + g * size, rank.begin() + (g + 1) * size);
    std::sort(of.rbegin(), of.rend());
    return r.group_score == GroupScore::largest ? of[0] : of[0] + of[1];
  };
  if (r.kept_groups < r.groups) std::stable_sort(groups.begin(), groups.end(), [&](auto a, auto b) { return strength(a) > strength(b); });
  groups.resize(std::size_t(r.kept_groups));
  std::sort(groups.begin(), groups.end());
  std::vector<std::int32_t> out;
  for (const std::int64_t g : groups)
    for (std::int64_t i = g * size; i < (g + 1) * size; ++i) out.push_back(std::int32_t(i));
  std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return rank[std::size_t(a)] > rank[std::size_t(b)]; });
  return out;
}

void expect_routed(const Routing& r, const Routed& o) {
  const std::int64_t T = o.logits.shape[0], E = o.logits.shape[1], K = r.choices;
  for (std::int64_t t = 0; t < T; ++t) {
    const std::vector<double> p = scores_of(r.score, testing::values(o.logits, t * E, E));
    std::vector<float> rank;
    for (std::int64_t e = 0; e < E; ++e) {
      const float score = o.scores.f32()[t * E + e];
      ASSERT_NEAR(score, p[std::size_t(e)], double(E + 40) * 0x1p-24 * p[std::size_t(e)]);
      rank.push_back(o.bias ? score + o.bias.f32()[e] : score);
    }
    const std::vector<std::int32_t> order = order_of(r, rank);
    double sum = r.floor;
    for (std::int64_t k = 0; k < K; ++k) {
      ASSERT_EQ(o.chosen.as<std::int32_t>()[t * K + k], order[std::size_t(k)]) << t << " " << k << " of " << E;
      sum += p[std::size_t(order[std::size_t(k)])];
    }
    for (std::int64_t k = 0; k < K; ++k) {
      const double w = r.scaling * p[std::size_t(order[std::size_t(k)])] / (r.normalize ? sum : 1);
      ASSERT_NEAR(o.weights.f32()[t * K + k], w, double(2 * E + 100) * 0x1p-24 * w);
    }
  }
}

TEST(Route, ChoosesAndWeighsAsThePublishedRouters) {
  for (const std::int64_t E : {1, 3, 8, 64, 256})
    for (const std::int64_t K : {1, 2, 8})
      for (const std::int64_t T : {0, 1, 7, 129})
        if (K <= E)
          for (const Routing& r : routers(E, K))
            for (const bool biased : {false, true}) {
              Stream s(Device::cpu);
              const Tensor bias = biased ? gaussian_tensor(s, {E}, 2, DType::f32, 0.1) : Tensor{};
              expect_routed(r, route(s, r, gaussian_tensor(s, {T, E}, std::uint64_t(E + T), DType::f32, 2), bias));
              if (::testing::Test::HasFatalFailure()) return;
            }
}

TEST(Route, TiesTakeTheLowerIndex) {
  Stream s(Device::cpu);
  for (const Routing& r : routers(64, 6)) {
    const Routed o = route(s, r, testing::tensor_of(s, std::vector<float>(64, 0.25f), {1, 64}));
    for (std::int32_t k = 0; k < 6; ++k) EXPECT_EQ(o.chosen.as<std::int32_t>()[k], k);
  }
  std::vector<float> u(64, -1.0f);
  u[40] = u[9] = 3, u[50] = 4;
  const Routed o = route(s, {.choices = 3}, testing::tensor_of(s, u, {1, 64}));
  EXPECT_EQ(o.chosen.as<std::int32_t>()[0], 50);
  EXPECT_EQ(o.chosen.as<std::int32_t>()[1], 9);
  EXPECT_EQ(o.chosen.as<std::int32_t>()[2], 40);
}

TEST(Route, ExpertsInTurnHaveEqualLoadsAndTheirOwnScoresAsWeights) {
  Stream s(Device::cpu);
  constexpr std::int64_t T = 24, E = 6, K = 4;
  const Routed in_turn = route(s, {.choices = K, .normalize = true, .scaling = 1.5f, .in_turn = true}, gaussian_tensor(s, {T, E}, 1));
  std::vector<std::int64_t> loads(E, 0);
  for (std::int64_t t = 0; t < T; ++t) {
    double sum = 0;
    for (std::int64_t k = 0; k < K; ++k) {
      const std::int32_t e = in_turn.chosen.as<std::int32_t>()[t * K + k];
      EXPECT_EQ(e, (t * K + k) % E);
      ++loads[std::size_t(e)], sum += double(in_turn.scores.f32()[t * E + e]);
    }
    for (std::int64_t k = 0; k < K; ++k) {
      const double p = double(in_turn.scores.f32()[t * E + (t * K + k) % E]);
      EXPECT_NEAR(in_turn.weights.f32()[t * K + k], 1.5 * p / sum, 1e-6);
    }
  }
  EXPECT_EQ(loads, std::vector<std::int64_t>(E, T * K / E));
}

TEST(Route, OfTheBiasOnlyTheChoiceDepends) {
  Stream s(Device::cpu);
  const Tensor u = testing::tensor_of(s, {0.0f, 1.0f, 2.0f, -1.0f}, {1, 4}), bias = testing::tensor_of(s, {0.9f, 0, 0, 0}, {4});
  const Routed o = route(s, {.score = Score::sigmoid, .choices = 1}, u, bias);
  EXPECT_EQ(o.chosen.as<std::int32_t>()[0], 0);
  EXPECT_EQ(o.weights.f32()[0], 0.5f);
}

TEST(Route, ALogitThatIsNotFiniteMakesItsTokenNan) {
  for (const float odd : {NAN, INFINITY, -INFINITY})
    for (const Routing& r : routers(64, 6)) {
      Stream s(Device::cpu);
      const Tensor u = gaussian_tensor(s, {3, 64}, 1);
      u.f32()[64 + 40] = odd;
      const Routed o = route(s, r, u), alone = route(s, r, u.rows(2, 1));
      for (std::int32_t k = 0; k < 6; ++k) {
        EXPECT_EQ(o.chosen.as<std::int32_t>()[6 + k], k);
        EXPECT_TRUE(std::isnan(o.weights.f32()[6 + k]));
        EXPECT_EQ(o.weights.f32()[12 + k], alone.weights.f32()[k]) << "other tokens keep theirs";
      }
      for (int e = 0; e < 64; ++e) EXPECT_TRUE(std::isnan(o.scores.f32()[64 + e]));
    }
}

TEST(Route, BackwardIsTheDerivativeOfForward) {
  constexpr std::int64_t E = 16, K = 3;
  const std::vector<float> u = testing::gaussian(E, 1, 1.5), dw = testing::gaussian(K, 2, 1), dp = testing::gaussian(E, 3, 1);
  for (const Routing& r : routers(E, K))
    for (const bool relative : {false, true})
      for (const float z : {0.0f, 0.01f}) {
        const WholeToken<Dual> lanes;
        std::vector<Dual> logits(u.begin(), u.end()), dweights(dw.begin(), dw.end()), dscores(dp.begin(), dp.end()), scores(E), weights(K),
            dlogits(E);
        std::int32_t chosen[K];
        route_row(lanes, r, 0, E, logits.data(), nullptr, chosen, weights.data(), scores.data());
        const auto ds = score_gradient<Dual>(lanes, r, E, scores.data(), chosen, dweights.data(), dscores.data(), relative);
        route_backward_row(lanes, r, E, logits.data(), ds, scores.data(), z, dlogits.data());
        for (std::size_t i = 0; i < E; ++i) {
          logits[i].slope = 1;
          route_row(lanes, r, 0, E, logits.data(), nullptr, chosen, weights.data(), scores.data());
          Dual loss, total, sum;
          for (std::size_t k = 0; k < K; ++k) loss += dweights[k] * weights[k];
          for (const Dual p : scores) total += p;
          for (std::size_t e = 0; e < E; ++e) loss += dscores[e] * (relative ? scores[e] / total : scores[e]);
          for (const Dual x : logits) sum += testing::exp(x);
          const Dual z_root = testing::log(sum);
          loss += Dual(z) * z_root * z_root;
          EXPECT_NEAR(dlogits[i].value, loss.slope, 1e-12 * (1 + std::fabs(loss.slope))) << i << " " << relative << " " << z;
          logits[i].slope = 0;
        }
      }
}

TEST(Route, BackwardOfTensorsIsThatOfItsFormulaInDouble) {
  for (const std::int64_t T : {6, 128})
    for (const Routing& r : routers(64, 6)) {
      constexpr std::int64_t E = 64, K = 6, S = 2;
      Stream s(Device::cpu);
      const Routed o = route(s, r, gaussian_tensor(s, {T, E}, 1));
      const Tensor dweights = gaussian_tensor(s, {T, K}, 2), dscores = gaussian_tensor(s, {S, E}, 3), dlogits = s.empty({T, E}, DType::f32);
      route_backward(s, r,
                     {.logits = o.logits,
                      .scores = o.scores,
                      .chosen = o.chosen,
                      .dweights = dweights,
                      .dscores = dscores,
                      .dlogits = dlogits,
                      .z_loss = 0.01f,
                      .relative = true});
      const WholeToken<double> lanes;
      for (std::int64_t t = 0; t < T; ++t) {
        const auto logits = testing::values(o.logits, t * E, E), dw = testing::values(dweights, t * K, K),
                   dp = testing::values(dscores, t / (T / S) * E, E);
        const auto scores = scores_of(r.score, logits);
        std::vector<double> wanted(E);
        const auto ds = score_gradient<double>(lanes, r, E, scores.data(), o.chosen.as<std::int32_t>() + t * K, dw.data(), dp.data(), true);
        route_backward_row(lanes, r, E, logits.data(), ds, scores.data(), 0.01f, wanted.data());
        for (std::int64_t e = 0; e < E; ++e)
          ASSERT_NEAR(dlogits.f32()[t * E + e], wanted[std::size_t(e)], 1e-4 * std::max(1.0f, r.scaling)) << t << " " << e;
      }
    }
}

TEST(Route, AScaleOfTheZLossMultipliesIt) {
  Stream s(Device::cpu);
  const Routing r{.choices = 2};
  const Routed o = route(s, r, gaussian_tensor(s, {9, 8}, 1));
  const Tensor dweights = gaussian_tensor(s, {9, 2}, 2), scaled = s.empty({9, 8}, DType::f32), wanted = s.empty({9, 8}, DType::f32);
  const auto backward = [&](float z_loss, const Tensor& z_scale, const Tensor& dlogits) {
    route_backward(s, r,
                   {.logits = o.logits,
                    .scores = o.scores,
                    .chosen = o.chosen,
                    .dweights = dweights,
                    .dlogits = dlogits,
                    .z_loss = z_loss,
                    .z_scale = z_scale});
  };
  backward(0.25f, testing::tensor_of(s, {4}, {1}), scaled), backward(1, {}, wanted);
  EXPECT_EQ(testing::bytes(scaled), testing::bytes(wanted));
}

TEST(Route, LoadCountsChoicesAndAddsScores) {
  for (const bool relative : {false, true}) {
    constexpr std::int64_t T = 300, S = 3, E = 8, K = 2;
    Stream s(Device::cpu);
    const Routing r{.score = Score::sigmoid, .choices = K};
    const Routed o = route(s, r, gaussian_tensor(s, {T, E}, 1));
    const Tensor counts = testing::tensor_of(s, std::vector<float>(S * E, 5), {S, E}),
                 sums = testing::tensor_of(s, std::vector<float>(S * E, 0.5f), {S, E});
    route_load(s, {.chosen = o.chosen, .scores = o.scores, .counts = counts, .sums = sums, .relative = relative});
    std::vector<double> counted(S * E, 5), added(S * E, 0.5);
    for (std::size_t t = 0; t < T; ++t) {
      const auto p = testing::values(o.scores, std::int64_t(t) * E, E);
      const double all = relative ? std::accumulate(p.begin(), p.end(), 0.0) : 1;
      for (std::size_t e = 0; e < E; ++e) added[t / 100 * E + e] += p[e] / all;
      for (std::size_t k = 0; k < K; ++k) counted[t / 100 * E + std::size_t(o.chosen.as<std::int32_t>()[t * K + k])] += 1;
    }
    for (std::size_t i = 0; i < S * E; ++i) {
      EXPECT_EQ(counts.f32()[i], counted[i]);
      EXPECT_NEAR(sums.f32()[i], added[i], 120 * 0x1p-24 * added[i]);
    }
  }
}

// Members have parts of sequences, and some have rows of two of them: choices are added exactly, and a token's gradient is that of its
// sequence.
TEST(Route, PartsOfSequencesHaveTheLoadsAndTheGradientsOfCompleteOnes) {
  constexpr std::int64_t T = 300, S = 3, E = 8, K = 2, members = 4, own = T / members;
  Stream s(Device::cpu);
  const Routing r{.choices = K};
  const Routed all = route(s, r, gaussian_tensor(s, {T, E}, 1));
  const Tensor dscores = gaussian_tensor(s, {S, E}, 2), dweights = gaussian_tensor(s, {T, K}, 3), dlogits = s.empty({T, E}, DType::f32),
               of_parts = s.empty({T, E}, DType::f32);
  const Tensor counts = s.zeros({S, E}, DType::f32), sums = s.zeros({S, E}, DType::f32), added_counts = s.zeros({S, E}, DType::f32),
               added_sums = s.zeros({S, E}, DType::f32);
  const auto run = [&](std::int64_t first, std::int64_t n, const SequenceRows& rows, const Tensor& c, const Tensor& p, const Tensor& d) {
    route_load(s, {.chosen = all.chosen.rows(first, n), .scores = all.scores.rows(first, n), .counts = c, .sums = p, .rows = rows});
    route_backward(s, r,
                   {.logits = all.logits.rows(first, n),
                    .scores = all.scores.rows(first, n),
                    .chosen = all.chosen.rows(first, n),
                    .dweights = dweights.rows(first, n),
                    .dscores = dscores,
                    .dlogits = d.rows(first, n),
                    .rows = rows});
  };
  run(0, T, {}, counts, sums, dlogits);
  for (std::int64_t m = 0; m < members; ++m) run(m * own, own, {m * own, T / S}, added_counts, added_sums, of_parts);
  EXPECT_EQ(testing::bytes(added_counts), testing::bytes(counts));
  EXPECT_EQ(testing::bytes(of_parts), testing::bytes(dlogits));
  for (std::int64_t i = 0; i < S * E; ++i) EXPECT_NEAR(added_sums.f32()[i], sums.f32()[i], 120 * 0x1p-24 * sums.f32()[i]);
  EXPECT_THROW(run(0, own, {T - own + 1, T / S}, counts, sums, dlogits), ContractError) << "a token behind the last sequence";
}

TEST(Route, TheBitsDoNotDependOnThreads) {
  std::vector<std::vector<std::uint8_t>> seen;
  for (const int threads : {1, 3}) {
    const testing::WithThreads with(threads);
    Stream s(Device::cpu);
    const Routing r = routers(64, 8).back();
    const Routed o = route(s, r, gaussian_tensor(s, {501, 64}, 1));
    const Tensor dlogits = s.empty({501, 64}, DType::f32), counts = s.zeros({3, 64}, DType::f32), sums = s.zeros({3, 64}, DType::f32);
    route_backward(s, r, {.logits = o.logits, .scores = o.scores, .chosen = o.chosen, .dweights = o.weights, .dlogits = dlogits});
    route_load(s, {.chosen = o.chosen, .scores = o.scores, .counts = counts, .sums = sums});
    std::vector<std::uint8_t> all;
    for (const Tensor& t : {o.chosen, o.weights, o.scores, dlogits, counts, sums}) {
      const auto of = testing::bytes(t);
      all.insert(all.end(), of.begin(), of.end());
    }
    seen.push_back(all);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Route, RefusesWhatDoesNotFit) {
  Stream s(Device::null);
  const Tensor logits = s.empty({4, 8}, DType::f32), chosen = s.empty({4, 2}, DType::i32), weights = s.empty({4, 2}, DType::f32);
  const auto with = [&](const Routing& r, const Tensor& u) {
    route_forward(s, r, {.logits = u, .chosen = chosen, .weights = weights, .scores = logits});
  };
  EXPECT_NO_THROW(with({.choices = 2}, logits));
  EXPECT_THROW(with({.choices = 3}, logits), ContractError);
  EXPECT_THROW(with({.choices = 2, .groups = 3}, logits), ContractError) << "8 experts are no 3 groups";
  EXPECT_THROW(with({.choices = 2, .groups = 8, .kept_groups = 1}, logits), ContractError) << "one expert is kept";
  EXPECT_THROW(with({.group_score = GroupScore::two_largest, .choices = 2, .groups = 8, .kept_groups = 4}, logits), ContractError);
  EXPECT_THROW(with({.choices = 2}, s.empty({4, 8}, DType::bf16)), ContractError);
}

}  // namespace
}  // namespace octet::ops
