#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "octet/ops/cross_entropy/cross_entropy.kernels.hpp"
#include "octet/ops/cross_entropy/cross_entropy.math.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "tests/testing/dual.hpp"
#include "tests/testing/lanes.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::Dual, testing::NumberLane, testing::gaussian, testing::dot_bound;
constexpr double u = testing::unit_f32;
constexpr float infinity = std::numeric_limits<float>::infinity();

using Kernel = void (*)(const CrossEntropy&);
std::vector<Kernel> kernels() {
  std::vector<Kernel> list = {cpu::v3::cross_entropy};
  if (cpu::detected_isa() == cpu::Isa::v4) list.push_back(cpu::v4::cross_entropy);
  return list;
}

// Random logits of `tokens` rows of `columns`, of which the first `vocabulary` count; padding holds large values, which must not matter.
struct Problem {
  Stream stream{Device::cpu};
  std::int64_t tokens, columns, vocabulary;
  Tensor logits, targets, losses, loss_sum, counted;
  Problem(std::int64_t tokens, std::int64_t columns, std::int64_t vocabulary, DType dtype, double scale = 3)
      : tokens(tokens), columns(columns), vocabulary(vocabulary) {
    logits = stream.empty({tokens, columns}, dtype), targets = stream.empty({tokens}, DType::i32),
    losses = stream.zeros({tokens}, DType::f32);
    loss_sum = stream.zeros({1}, DType::f64), counted = stream.zeros({1}, DType::i64);
    const auto values = gaussian(std::size_t(tokens * columns), 1, scale);
    for (std::int64_t i = 0; i < tokens * columns; ++i) set(i, i % columns < vocabulary ? values[std::size_t(i)] : 1e30f);
    for (std::int64_t t = 0; t < tokens; ++t)
      target(t) = t % 5 == 3 ? -1 : std::int32_t(philox(2, std::uint64_t(t)).w[0] % std::uint64_t(vocabulary));
  }
  void set(std::int64_t i, float x) { testing::put(logits, i, x); }
  std::int32_t& target(std::int64_t t) { return targets.as<std::int32_t>()[t]; }
  std::vector<double> values() const {
    std::vector<double> out;
    for (std::int64_t i = 0; i < logits.count(); ++i) out.push_back(value_at(logits, i));
    return out;
  }
  CrossEntropy args(float scale = 1, bool gradient = true) const {
    return {.logits = logits,
            .targets = targets,
            .vocabulary = vocabulary,
            .losses = losses,
            .loss_sum = loss_sum,
            .counted = counted,
            .gradient_scale = scale,
            .gradient = gradient};
  }
};

// Loss and gradient of one row, in double, and what FP32 may add.
struct Reference {
  double loss, loss_bound;
  std::vector<double> gradient, gradient_bound;
};
Reference reference(const double* x, std::int64_t vocabulary, std::int64_t target, double scale) {
  double most = -INFINITY, least = INFINITY, sum = 0;
  for (std::int64_t v = 0; v < vocabulary; ++v) most = std::max(most, x[v]), least = std::min(least, x[v]);
  for (std::int64_t v = 0; v < vocabulary; ++v) sum += std::exp(x[v] - most);
  // An exponential: its argument rounded once, 1 ulp = 2 u of its own. Sums run in 8 lanes or more.
  const double exponential = std::expm1(u * (most - least)) + 2 * u, total = exponential + dot_bound(double(vocabulary) / 8 + 8, u, 1);
  Reference r;
  r.loss = std::log(sum) + most - x[target];
  r.loss_bound = 1.01 * (total + 2 * u * std::log(sum) + u * (most - x[target]) + u * r.loss);
  for (std::int64_t v = 0; v < vocabulary; ++v) {
    const double p = std::exp(x[v] - most) / sum;
    r.gradient.push_back((p - (v == target)) * scale);
    r.gradient_bound.push_back(1.01 * scale * (p * (exponential + total + 3 * u) + 2 * u * (v == target)));
  }
  return r;
}

TEST(CrossEntropy, LossAndGradientAreWithinTheirBoundOfTheDefinition) {
  const std::int64_t shapes[][3] = {{1, 1, 1}, {3, 16, 16}, {7, 48, 37}, {33, 272, 257}, {5, 5008, 5001}, {0, 16, 16}};
  const float scale = 0.125f / 7;
  for (const auto& [tokens, columns, vocabulary] : shapes)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const Kernel kernel : kernels()) {
        Problem p(tokens, columns, vocabulary, dtype);
        const auto x = p.values();
        kernel(p.args(scale));
        const auto dx = p.values();
        const testing::RoundingTo stored = testing::rounding_to(dtype);
        const double unit = std::max(stored.unit, u);
        for (std::int64_t t = 0; t < tokens; ++t) {
          const bool counts = p.target(t) != -1;
          const Reference want = reference(&x[std::size_t(t * columns)], vocabulary, counts ? p.target(t) : 0, scale);
          EXPECT_NEAR(p.losses.f32()[t], counts ? want.loss : 0, counts ? want.loss_bound : 0) << t;
          for (std::int64_t v = 0; v < columns; ++v) {
            const bool zero = !counts || v >= vocabulary;
            const double g = zero ? 0 : want.gradient[std::size_t(v)], bound = zero ? 0 : want.gradient_bound[std::size_t(v)];
            ASSERT_NEAR(dx[std::size_t(t * columns + v)], g, bound + unit * (std::abs(g) + bound) + stored.smallest + 1e-40)
                << t << ", " << v;
          }
        }
      }
}

// Columns of three owners, the last of which has padding. Each owner's sum of exponentials is rescaled once more.
TEST(CrossEntropy, OfColumnsOfSeveralOwnersIsThatOfAllColumns) {
  constexpr std::int64_t tokens = 33, owners = 3, own = 32, vocabulary = 91;
  const float scale = 0.125f / 7;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Problem whole(tokens, owners * own, vocabulary, dtype);
    const auto x = whole.values();
    std::deque<Problem> parts;
    const Tensor statistics = whole.stream.empty({owners * tokens, 3}, DType::f32);
    for (std::int64_t o = 0; o < owners; ++o) {
      Problem& p = parts.emplace_back(tokens, own, std::min(own, vocabulary - o * own), dtype);
      for (std::int64_t i = 0; i < tokens * own; ++i) p.set(i, float(x[std::size_t(i / own * owners * own + o * own + i % own)]));
      for (std::int64_t t = 0; t < tokens; ++t) p.target(t) = whole.target(t);
      logit_statistics(whole.stream, {.logits = p.logits,
                                      .targets = p.targets,
                                      .vocabulary = p.vocabulary,
                                      .first = o * own,
                                      .statistics = statistics.rows(o * tokens, tokens)});
    }
    const double unit = std::max(testing::rounding_to(dtype).unit, u);
    for (std::int64_t o = 0; o < owners; ++o) {
      Problem& p = parts[std::size_t(o)];
      CrossEntropy args = p.args(scale);
      args.first = o * own, args.parts = statistics;
      cross_entropy(whole.stream, args);
      const auto dx = p.values();
      for (std::int64_t t = 0; t < tokens; ++t) {
        const bool counts = p.target(t) != -1;
        const Reference want = reference(&x[std::size_t(t * owners * own)], vocabulary, counts ? p.target(t) : 0, scale);
        EXPECT_NEAR(p.losses.f32()[t], counts ? want.loss : 0, counts ? 2 * want.loss_bound + 8 * u : 0) << o << ", " << t;
        EXPECT_EQ(p.losses.f32()[t], parts[0].losses.f32()[t]) << "every owner finds the same loss";
        for (std::int64_t v = 0; v < own; ++v) {
          const bool zero = !counts || o * own + v >= vocabulary;
          const double g = zero ? 0 : want.gradient[std::size_t(o * own + v)];
          const double bound = zero ? 0 : 2 * want.gradient_bound[std::size_t(o * own + v)] + 4 * u * std::abs(g);
          ASSERT_NEAR(dx[std::size_t(t * own + v)], g, bound + unit * (std::abs(g) + bound)) << o << ", " << t << ", " << v;
        }
      }
    }
  }
}

TEST(CrossEntropy, GradientFormulaIsTheDerivativeOfTheLossFormula) {
  const std::int64_t vocabulary = 9, target = 4;
  const auto values = gaussian(std::size_t(vocabulary), 5, 2.0);
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    std::vector<Dual> x(values.begin(), values.end());
    x[std::size_t(i)].slope = 1;
    const Dual loss = cross_entropy_loss(row_softmax(NumberLane<Dual>{}, vocabulary, x.data()), x[std::size_t(target)]);
    std::vector<double> p(values.begin(), values.end());
    scaled_softmax(NumberLane<double>{}, vocabulary, row_softmax(NumberLane<double>{}, vocabulary, p.data()), 1.0f, p.data(), p.data());
    EXPECT_NEAR(loss.slope, p[std::size_t(i)] - (i == target), 1e-14);
  }
}

// A power of two multiplies the gradient exactly and changes no loss.
TEST(CrossEntropy, TheLossScaleMultipliesTheGradientAlone) {
  for (const Kernel kernel : kernels()) {
    Problem plain(7, 48, 37, DType::f32), scaled(7, 48, 37, DType::f32);
    CrossEntropy a = scaled.args(0.25f);
    a.loss_scale = scaled.stream.empty({1}, DType::f32);
    *a.loss_scale.f32() = 0x1p12f;
    kernel(plain.args(0.25f)), kernel(a);
    std::vector<double> wanted = plain.values();
    for (double& x : wanted) x *= 0x1p12;
    EXPECT_EQ(scaled.values(), wanted);
    EXPECT_EQ(*scaled.loss_sum.as<double>(), *plain.loss_sum.as<double>());
  }
}

// The smallest FP16 number is 2^-24, and half of it rounds to 0.
TEST(CrossEntropy, GradientsBelow2ToTheMinus25AreLostInFp16WithoutALossScale) {
  for (const float scale : {0.0f, 1.0f, 0x1p16f}) {
    Problem p(1, 4, 4, DType::f16);
    p.target(0) = 0;
    for (int v = 0; v < 4; ++v) p.set(v, 0);  // probabilities of 1/4
    CrossEntropy a = p.args(0x1.8p-24f);      // gradients of -0x1.2p-24 and 0x1.8p-26, before the scale
    if (scale > 0) a.loss_scale = p.stream.empty({1}, DType::f32), *a.loss_scale.f32() = scale;
    cross_entropy(p.stream, a);
    const bool kept = scale == 0x1p16f;
    EXPECT_EQ(p.values(),
              kept ? (std::vector<double>{-0x1.2p-8, 0x1.8p-10, 0x1.8p-10, 0x1.8p-10}) : (std::vector<double>{-0x1p-24, 0, 0, 0}));
  }
}

TEST(CrossEntropy, AddsLossesInOrderWhateverTheThreadsAndChunks) {
  const int usual = cpu::threads();
  Problem whole(70, 1040, 1030, DType::bf16);
  cpu::set_threads(3);
  cross_entropy(whole.stream, whole.args());
  Problem parts(70, 1040, 1030, DType::bf16);
  cpu::set_threads(1);
  for (const auto& [begin, n] : {std::pair{0, 33}, std::pair{33, 37}}) {
    CrossEntropy a = parts.args();
    a.logits = a.logits.rows(begin, n), a.targets = a.targets.rows(begin, n), a.losses = a.losses.rows(begin, n);
    cross_entropy(parts.stream, a);
  }
  cpu::set_threads(usual);
  EXPECT_EQ(whole.values(), parts.values());
  double sum = 0;
  for (std::int64_t t = 0; t < 70; ++t) sum += whole.losses.f32()[t];
  EXPECT_EQ(*whole.loss_sum.as<double>(), sum);
  EXPECT_NEAR(*parts.loss_sum.as<double>(), sum, 70 * 0x1p-53 * sum);
  EXPECT_EQ(*whole.counted.as<std::int64_t>(), 56);
  EXPECT_EQ(*parts.counted.as<std::int64_t>(), 56);
}

TEST(CrossEntropy, ForwardOnlyLeavesTheLogitsAndGivesTheSameLoss) {
  Problem a(9, 48, 40, DType::bf16), b(9, 48, 40, DType::bf16);
  const auto before = a.values();
  cross_entropy(a.stream, a.args(1, false));
  cross_entropy(b.stream, b.args(1, true));
  EXPECT_EQ(a.values(), before);
  EXPECT_EQ(*a.loss_sum.as<double>(), *b.loss_sum.as<double>());
}

TEST(CrossEntropy, StaysFiniteWhereLogitsAreHuge) {
  Problem p(2, 16, 16, DType::f32, 1e30);
  cross_entropy(p.stream, p.args());
  for (const double x : p.values()) EXPECT_TRUE(std::isfinite(x));
  for (int t = 0; t < 2; ++t) EXPECT_TRUE(std::isfinite(p.losses.f32()[t]));
}

TEST(CrossEntropy, OfEqualLogitsIsTheLogOfTheVocabulary) {
  Problem p(1, 64, 50, DType::f32);
  for (int v = 0; v < 50; ++v) p.set(v, 1000.0f);
  cross_entropy(p.stream, p.args());
  EXPECT_NEAR(p.losses.f32()[0], std::log(50.0), 2 * u * std::log(50.0));
}

TEST(CrossEntropy, CarriesNanInfinityAndUnknownTargetsIntoTheLossOfTheirRowAlone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity}) {
    Problem p(3, 48, 41, DType::f32);
    p.set(48 + 40, bad);
    cross_entropy(p.stream, p.args());
    EXPECT_TRUE(std::isfinite(p.losses.f32()[0]) && std::isnan(p.losses.f32()[1]) && std::isfinite(p.losses.f32()[2])) << bad;
    EXPECT_TRUE(std::isnan(p.values()[48 + 40]) && std::isfinite(p.values()[0]) && std::isfinite(p.values()[2 * 48])) << bad;
  }
  for (const std::int32_t unknown : {41, 48, -2, 1 << 30}) {
    Problem p(3, 48, 41, DType::bf16);
    p.target(1) = unknown;
    cross_entropy(p.stream, p.args());
    EXPECT_TRUE(std::isfinite(p.losses.f32()[0]) && std::isnan(p.losses.f32()[1]) && std::isnan(*p.loss_sum.as<double>())) << unknown;
  }
}

TEST(CrossEntropy, RunsDryAndRefusesWrongShapes) {
  Stream null(Device::null);
  const Tensor logits = null.empty({8, 32}, DType::bf16), targets = null.empty({8}, DType::i32), losses = null.empty({8}, DType::f32);
  const Tensor sum = null.empty({1}, DType::f64), counted = null.empty({1}, DType::i64);
  CrossEntropy a{.logits = logits, .targets = targets, .vocabulary = 30, .losses = losses, .loss_sum = sum, .counted = counted};
  cross_entropy(null, a);
  EXPECT_EQ(null.work().bytes, 2.0 * 8 * 32 * 2);
  a.vocabulary = 33;
  EXPECT_THROW(cross_entropy(null, a), ContractError);
  a.vocabulary = 30, a.loss_scale = targets;
  EXPECT_THROW(cross_entropy(null, a), ContractError);
  a.loss_scale = {}, a.targets = losses;
  EXPECT_THROW(cross_entropy(null, a), ContractError);
  a.targets = targets, a.loss_sum = losses;
  EXPECT_THROW(cross_entropy(null, a), ContractError);
}

}  // namespace
}  // namespace octet::ops
