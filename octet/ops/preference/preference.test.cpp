#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "octet/ops/preference/preference.kernels.hpp"
#include "octet/ops/preference/preference.math.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::Dual;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Losses of 20 tokens, two pairs and a place for a third.
struct Problem {
  Stream stream{Device::cpu};
  Tensor losses = testing::gaussian_tensor(stream, {20}, 1), weights = stream.zeros({20}, DType::f32);
  Tensor places = stream.zeros({3, 4}, DType::i32), references = stream.zeros({3, 2}, DType::f64);
  Tensor loss_sum = stream.zeros({1}, DType::f64), counted = stream.zeros({1}, DType::i64),
         sums = stream.zeros({preference_sums}, DType::f64), log_probabilities = stream.zeros({3, 2}, DType::f64);
  explicit Problem(double reference = 0.5) {
    const std::int32_t at[] = {0, 4, 4, 9, 10, 11, 12, 18};
    std::copy(std::begin(at), std::end(at), places.as<std::int32_t>());
    for (int i = 0; i < 4; ++i) references.as<double>()[i] = reference * (i - 1.5);
  }
  double log_p(int begin, int end) const {
    double sum = 0;
    for (int t = begin; t < end; ++t) sum -= double(losses.f32()[t]);
    return sum;
  }
  Preference args(PreferenceForm form) const {
    return {.losses = losses,
            .places = places,
            .references = references,
            .form = form,
            .weights = weights,
            .loss_sum = loss_sum,
            .counted = counted,
            .sums = sums,
            .log_probabilities = log_probabilities};
  }
};

// -log s(z) by its own definition.
double minus_log_sigmoid(double z) { return -std::log(1 / (1 + std::exp(-z))); }

TEST(Preference, LossSumsAndLogProbabilitiesAreThoseOfTheDefinition) {
  for (const double smoothing : {0.0, 0.1})
    for (auto* const kernel : testing::kernels(cpu::v3::preference, cpu::v4::preference)) {
      Problem p;
      const double beta = 0.7;
      kernel(p.args({beta, smoothing}), p.stream.empty({3, PairResult::entries}, DType::f64));
      double loss = 0, right = 0, chosen = 0, rejected = 0;
      for (const auto& [i, a, b] : {std::tuple(0, p.log_p(0, 4), p.log_p(4, 9)), std::tuple(1, p.log_p(10, 11), p.log_p(12, 18))}) {
        const double r0 = beta * (a - p.references.as<double>()[2 * i]), r1 = beta * (b - p.references.as<double>()[2 * i + 1]);
        loss += (1 - smoothing) * minus_log_sigmoid(r0 - r1) + smoothing * minus_log_sigmoid(r1 - r0);
        right += r0 > r1, chosen += r0, rejected += r1;
        EXPECT_EQ(p.log_probabilities.as<double>()[2 * i], a);
        EXPECT_EQ(p.log_probabilities.as<double>()[2 * i + 1], b);
      }
      EXPECT_NEAR(*p.loss_sum.as<double>(), loss, 1e-14 * loss);
      EXPECT_EQ(*p.counted.as<std::int64_t>(), 2);
      EXPECT_EQ(p.sums.as<double>()[chosen_preferred], right);
      EXPECT_NEAR(p.sums.as<double>()[chosen_rewards], chosen, 1e-14);
      EXPECT_NEAR(p.sums.as<double>()[rejected_rewards], rejected, 1e-14);
      EXPECT_NEAR(p.sums.as<double>()[chosen_log_probabilities], p.log_p(0, 4) + p.log_p(10, 11), 1e-14);
    }
}

TEST(Preference, WeightsAreTheDerivativesOfTheLossByTheLossesOfTokens) {
  const PreferenceForm form{0.7, 0.1};
  Problem p;
  preference(p.stream, p.args(form));
  for (int t = 0; t < 20; ++t) {
    Dual loss = 0.0;
    for (const auto& [i, a, b, c, d] : {std::tuple(0, 0, 4, 4, 9), std::tuple(1, 10, 11, 12, 18)}) {
      const auto log_p = [&](int begin, int end) {
        Dual sum = 0.0;
        for (int k = begin; k < end; ++k) sum -= Dual(double(p.losses.f32()[k]), k == t);
        return sum;
      };
      const Dual z =
          Dual(form.beta) * (log_p(a, b) - p.references.as<double>()[2 * i] - log_p(c, d) + p.references.as<double>()[2 * i + 1]);
      loss += preference_loss(form.label_smoothing, z);
    }
    EXPECT_NEAR(p.weights.f32()[t], loss.slope, 0x1p-23 * std::abs(loss.slope)) << t;
  }
}

TEST(Preference, WithoutAReferenceTheAnswersThemselvesAreIt) {
  Problem p(unknown);
  preference(p.stream, p.args({.beta = 0.5}));
  EXPECT_NEAR(*p.loss_sum.as<double>(), 2 * std::log(2.0), 1e-15);
  EXPECT_EQ(p.weights.f32()[0], 0.25f);
  EXPECT_EQ(p.weights.f32()[4], -0.25f);
  EXPECT_EQ(p.sums.as<double>()[chosen_preferred], 0);
}

TEST(Preference, StaysFiniteForMarginsBeyondTheExponential) {
  for (const double margin : {1e6, -1e6}) {
    Problem p(0);
    p.references.as<double>()[0] = margin, p.references.as<double>()[2] = margin;
    preference(p.stream, p.args({.beta = 1}));
    EXPECT_NEAR(*p.loss_sum.as<double>(), margin > 0 ? 2e6 : 0, 100);
    EXPECT_EQ(p.weights.f32()[0], margin > 0 ? 1.0f : 0.0f);
  }
}

TEST(Preference, RefusesOtherTypesAndShapes) {
  Problem p;
  Preference a = p.args({});
  a.references = p.places;
  EXPECT_THROW(preference(p.stream, a), ContractError);
  a = p.args({}), a.weights = p.sums;
  EXPECT_THROW(preference(p.stream, a), ContractError);
  a = p.args({}), a.sums = p.loss_sum;
  EXPECT_THROW(preference(p.stream, a), ContractError);
}

TEST(Preference, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    preference(s, {.losses = s.zeros({20}, DType::f32),
                   .places = s.zeros({3, 4}, DType::i32),
                   .references = s.zeros({3, 2}, DType::f64),
                   .form = {},
                   .weights = s.zeros({20}, DType::f32),
                   .loss_sum = s.zeros({1}, DType::f64),
                   .counted = s.zeros({1}, DType::i64),
                   .sums = s.zeros({preference_sums}, DType::f64)});
  });
}

}  // namespace
}  // namespace octet::ops
