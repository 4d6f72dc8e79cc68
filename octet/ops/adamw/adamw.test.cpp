#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::Bounded, testing::BoundedLane, testing::gaussian_tensor, testing::values;

constexpr std::int64_t counts[] = {0, 1, 7, 16, 33, 4099, 20011};

Tensor step_of(Stream& stream, AdamWStep step) {
  const Tensor t = stream.empty({adamw_step_floats}, DType::f32);
  if (stream.device() == Device::cpu) *t.as<AdamWStep>() = step;
  return t;
}

Stored plain(const Tensor& t) { return Stored::plain(t); }
Moments plain(const Tensor& m, const Tensor& v) { return {plain(m), plain(v)}; }

AdamW update_of(const AdamWParameter& p, const Tensor& step) { return {.parameters = std::span(&p, 1), .step = step}; }

std::vector<std::vector<std::uint8_t>> bytes_of(const AdamWParameter& p) {
  return {testing::bytes(p.value.codes), testing::bytes(p.moments.m.codes), testing::bytes(p.moments.v.codes)};
}

struct Case {
  Stream stream{Device::cpu};
  AdamWParameter parameter;
  Tensor step;
  Case(std::int64_t n, const AdamWStep& s) : step(step_of(stream, s)) {
    const Tensor v = gaussian_tensor(stream, {n}, 4);
    for (std::int64_t i = 0; i < n; ++i) v.f32()[i] = v.f32()[i] * v.f32()[i];
    parameter = {.value = plain(gaussian_tensor(stream, {n}, 1)),
                 .grad = plain(gaussian_tensor(stream, {n}, 2)),
                 .moments = plain(gaussian_tensor(stream, {n}, 3), v)};
  }
  AdamW args() const { return update_of(parameter, step); }
  std::vector<std::vector<std::uint8_t>> state() const { return bytes_of(parameter); }
};

/// The same with everything in BF16.
AdamWParameter narrowed(Stream& stream, AdamWParameter p) {
  for (Stored* t : {&p.value, &p.grad, &p.moments.m, &p.moments.v}) {
    const Tensor out = stream.empty(t->shape(), DType::bf16);
    for (std::int64_t i = 0; i < t->count(); ++i) out.bf16()[i] = to_bf16(t->codes.f32()[i]);
    *t = plain(out);
  }
  return p;
}

constexpr AdamWStep tenth{
    .learning_rate = 3e-4f, .bias_correction1 = 1.5354f, .bias_correction2 = 2.4919f, .gradient_scale = 0.37f, .updates = 0x123456789};

TEST(AdamW, IsWithinItsErrorBoundOnEveryInstructionSet) {
  for (const std::int64_t n : counts)
    for (auto* const kernel : testing::kernels(cpu::v3::adamw, cpu::v4::adamw)) {
      Case c(n, tenth);
      const AdamWParameter& p = c.parameter;
      auto value = testing::bounded(values(p.value.codes)), m = testing::bounded(values(p.moments.m.codes)),
           v = testing::bounded(values(p.moments.v.codes));
      for (std::int64_t i = 0; i < n; ++i)
        adamw_update(BoundedLane{}, i, AdamWConstants(c.args(), p.weight_decay), tenth, p.grad.codes.f32(), value.data(), m.data(),
                     v.data());
      kernel(c.args(), {});
      testing::expect_within(p.value.codes, 0, value, "value");
      testing::expect_within(p.moments.m.codes, 0, m, "m");
      testing::expect_within(p.moments.v.codes, 0, v, "v");
    }
}

TEST(AdamW, EveryInstructionSetAndThreadCountGivesTheSameBits) {
  Case first(20011, tenth);
  cpu::v3::adamw(first.args(), {});
  for (auto* const kernel : testing::kernels(cpu::v3::adamw, cpu::v4::adamw))
    for (const int threads : {1, 2, 3}) {
      const testing::WithThreads limit(threads);
      Case c(20011, tenth);
      kernel(c.args(), {});
      EXPECT_EQ(c.state(), first.state());
    }
}

// More parameters than one launch of a GPU takes, of every mixture of types, some of them empty.
TEST(AdamW, ManyParametersAtOnceAreEachOnItsOwn) {
  constexpr std::int64_t lengths[] = {33, 0, 4099, 8, 1};
  std::vector<std::unique_ptr<Case>> together, alone;
  std::vector<AdamWParameter> all;
  for (auto* cases : {&together, &alone})
    for (int i = 0; i < 70; ++i) {
      Case& c = *cases->emplace_back(std::make_unique<Case>(lengths[i % 5], tenth));
      const AdamWParameter narrow = narrowed(c.stream, c.parameter);
      if (i % 2) c.parameter.value = narrow.value;
      if (i % 3) c.parameter.grad = narrow.grad;
      if (i % 4) c.parameter.moments = narrow.moments;
      c.parameter.weight_decay = 0.01 * i, c.parameter.key = std::uint64_t(i);
    }
  for (const auto& c : together) all.push_back(c->parameter);
  adamw(together[0]->stream, {.parameters = all, .step = together[0]->step});
  for (std::size_t i = 0; i < all.size(); ++i) {
    adamw(alone[i]->stream, alone[i]->args());
    EXPECT_EQ(together[i]->state(), alone[i]->state()) << i;
  }
}

// The draws decide between the two neighbours of the f32 result, so stored values are those or their neighbours, and their mean is right.
TEST(AdamW, Bf16StatesAreRoundedStochasticallyAndTheSameOnEveryInstructionSet) {
  constexpr std::int64_t n = 20011;
  Case exact(n, tenth);
  std::vector<AdamWParameter> runs;
  for (auto* const kernel : testing::kernels(cpu::v3::adamw, cpu::v4::adamw)) {
    AdamWParameter p = narrowed(exact.stream, exact.parameter);
    p.key = 77;
    runs.push_back(p);
    kernel(update_of(p, exact.step), {});
  }
  EXPECT_EQ(bytes_of(runs.front()), bytes_of(runs.back()));
  AdamWParameter wide = exact.parameter;
  for (Stored* t : {&wide.value, &wide.grad, &wide.moments.m, &wide.moments.v})
    for (std::int64_t i = 0; i < n; ++i) t->codes.f32()[i] = to_float(to_bf16(t->codes.f32()[i]));
  cpu::v3::adamw(update_of(wide, exact.step), {});
  const Tensor* got[] = {&runs.front().value.codes, &runs.front().moments.m.codes, &runs.front().moments.v.codes};
  const Tensor* exactly[] = {&wide.value.codes, &wide.moments.m.codes, &wide.moments.v.codes};
  for (int variable = 0; variable < 3; ++variable)
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t word = philox(77, std::uint64_t(i / 8), 4 * tenth.updates + std::uint64_t(variable)).w[i % 8 / 2];
      const Bf16 wanted = to_bf16_stochastic(exactly[variable]->f32()[i], i % 2 ? word : word << 16);
      ASSERT_EQ(got[variable]->bf16()[i].bits, wanted.bits) << variable << " " << i;
    }
  double bias = 0, spread = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double got = to_float(runs.front().value.codes.bf16()[i]), want = wide.value.codes.f32()[i], step = std::fabs(want) * 0x1p-7;
    ASSERT_LE(std::fabs(got - want), step) << i;
    bias += got - want, spread += step * step;
  }
  EXPECT_LE(std::fabs(bias), 5 * std::sqrt(spread)) << "five standard deviations, each below one step";
}

// The same formula on the same values, stored in f32 and in BF16: infinity and NaN stay, and what is beyond the largest BF16 becomes it.
TEST(AdamW, Bf16StatesSaturateAndKeepWhatIsNotFinite) {
  constexpr std::int64_t n = 77;
  constexpr float infinity = std::numeric_limits<float>::infinity(), beyond = 0x1.fffffep127f;
  AdamWStep unscaled = tenth;
  unscaled.gradient_scale = 1;
  Case exact(n, unscaled);
  AdamWParameter& wide = exact.parameter;
  for (Stored* t : {&wide.value, &wide.moments.m, &wide.moments.v})
    for (std::int64_t i = 0; i < n; ++i) t->codes.f32()[i] = to_float(to_bf16(t->codes.f32()[i]));
  wide.value.codes.f32()[3] = infinity, wide.value.codes.f32()[20] = std::nanf(""), wide.value.codes.f32()[41] = -infinity,
  wide.value.codes.f32()[70] = -infinity;
  for (const std::int64_t i : {12, 13, 50, 76}) wide.moments.m.codes.f32()[i] = bf16_max, wide.grad.codes.f32()[i] = beyond;
  wide.grad.codes.f32()[64] = infinity;
  std::vector<AdamWParameter> runs;
  for (auto* const kernel : testing::kernels(cpu::v3::adamw, cpu::v4::adamw)) {
    AdamWParameter p = narrowed(exact.stream, wide);
    p.key = 77, p.grad = wide.grad;
    runs.push_back(p);
    kernel(update_of(p, exact.step), {});
  }
  EXPECT_EQ(bytes_of(runs.front()), bytes_of(runs.back()));
  cpu::v3::adamw(update_of(wide, exact.step), {});
  const Tensor* got[] = {&runs.front().value.codes, &runs.front().moments.m.codes, &runs.front().moments.v.codes};
  const Tensor* exactly[] = {&wide.value.codes, &wide.moments.m.codes, &wide.moments.v.codes};
  int saturated = 0;
  for (int variable = 0; variable < 3; ++variable)
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = exactly[variable]->f32()[i];
      const std::uint32_t word = philox(77, std::uint64_t(i / 8), 4 * tenth.updates + std::uint64_t(variable)).w[i % 8 / 2];
      const Bf16 wanted = to_bf16_stochastic(x, i % 2 ? word : word << 16);
      ASSERT_EQ(got[variable]->bf16()[i].bits, wanted.bits) << variable << " " << i << ": " << x;
      saturated += std::isfinite(x) && std::fabs(x) > bf16_max;
    }
  EXPECT_EQ(saturated, 4);
}

// With a gradient that never changes, both corrected moments are that gradient and its square at every step.
TEST(AdamW, AConstantGradientMovesAValueByTheLearningRateEachStep) {
  Stream s(Device::cpu);
  const Tensor value = testing::tensor_of(s, {1, 1, 1}, {3}), grad = testing::tensor_of(s, {1e-3f, -2, 40}, {3});
  const Moments moments = plain(s.zeros({3}, DType::f32), s.zeros({3}, DType::f32));
  const double beta1 = 0.9, beta2 = 0.999;
  const AdamWParameter p{.value = plain(value), .grad = plain(grad), .moments = moments, .weight_decay = 0};
  for (int t = 1; t <= 20; ++t) {
    const Tensor step = step_of(s, {.learning_rate = 0x1p-10f,
                                    .bias_correction1 = float(1 / (1 - std::pow(beta1, t))),
                                    .bias_correction2 = float(1 / (1 - std::pow(beta2, t)))});
    adamw(s, {.parameters = std::span(&p, 1), .step = step, .beta1 = beta1, .beta2 = beta2, .eps = 0});
    // Each step's direction is 1 within the roundings of t steps of two moments and of the formula.
    const double tolerance = t * (t * 0x1p-10 * testing::dot_bound(4.0 * t + 8, testing::unit_f32, 1) + testing::unit_f32 * 2);
    EXPECT_NEAR(value.f32()[0], 1 - t * 0x1p-10, tolerance) << t;
    EXPECT_NEAR(value.f32()[1], 1 + t * 0x1p-10, tolerance) << t;
    EXPECT_NEAR(value.f32()[2], 1 - t * 0x1p-10, tolerance) << t;
  }
}

TEST(AdamW, DecayIsDecoupledFromTheGradient) {
  Stream s(Device::cpu);
  const Tensor value = testing::tensor_of(s, {2, -3}, {2}), grad = s.zeros({2}, DType::f32), step = step_of(s, {.learning_rate = 0.5f});
  const AdamWParameter p{.value = plain(value),
                         .grad = plain(grad),
                         .moments = plain(s.zeros({2}, DType::f32), s.zeros({2}, DType::f32)),
                         .weight_decay = 0.25};
  adamw(s, update_of(p, step));
  EXPECT_EQ(value.f32()[0], 2 * (1 - 0.125f));
  EXPECT_EQ(value.f32()[1], -3 * (1 - 0.125f));
}

TEST(AdamW, TheGradientScaleIsTheSameAsAScaledGradient) {
  AdamWStep scaled = tenth, plain = tenth;
  scaled.gradient_scale = 0.125f, plain.gradient_scale = 1;
  Case a(4099, scaled), b(4099, plain);
  for (std::int64_t i = 0; i < 4099; ++i) b.parameter.grad.codes.f32()[i] *= 0.125f;
  adamw(a.stream, a.args());
  adamw(b.stream, b.args());
  EXPECT_EQ(a.state(), b.state());
}

TEST(AdamW, ASkippedStepLeavesEveryBitEvenWhenGradientsAreNotFinite) {
  for (const float skip : {1.0f, -1.0f, NAN}) {
    AdamWStep step = tenth;
    step.skip = skip, step.gradient_scale = NAN;
    Case c(4099, step);
    for (std::int64_t i = 0; i < 4099; ++i) c.parameter.grad.codes.f32()[i] = i % 2 != 0 ? NAN : INFINITY;
    const auto before = c.state();
    adamw(c.stream, c.args());
    EXPECT_EQ(c.state(), before);
  }
}

TEST(AdamW, AZeroGradientOnZeroMomentsIsNoDivisionByZero) {
  Stream s(Device::cpu);
  const Tensor value = testing::tensor_of(s, {2}, {1}), zero = s.zeros({1}, DType::f32);
  const AdamWParameter p{
      .value = plain(value), .grad = plain(zero), .moments = plain(s.zeros({1}, DType::f32), s.zeros({1}, DType::f32)), .weight_decay = 0};
  adamw(s, update_of(p, step_of(s, {.learning_rate = 1})));
  EXPECT_EQ(value.f32()[0], 2);
}

TEST(AdamW, TakesTheComplementOfBetaBeforeRounding) {
  const AdamWConstants c(AdamW{.beta1 = 0.9, .beta2 = 0.999}, 0);
  EXPECT_EQ(c.one_minus_beta1, 0.1f);
  EXPECT_EQ(c.one_minus_beta2, 0.001f);
}

TEST(AdamW, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const auto t = [&] { return plain(s.zeros({33}, DType::f32)); };
    const AdamWParameter p{.value = t(), .grad = t(), .moments = {t(), t()}};
    adamw(s, update_of(p, step_of(s, tenth)));
  });
}

TEST(AdamW, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor a = s.empty({4}, DType::f32), b = s.empty({5}, DType::f32), step = s.empty({adamw_step_floats}, DType::f32),
               half = s.empty({4}, DType::f16);
  const Stored four = plain(a), five = plain(b), halves{.codes = half, .scales = {}, .storage = Storage::f16};
  const AdamWParameter wrong[] = {{.value = four, .grad = five, .moments = {four, four}},
                                  {.value = four, .grad = halves, .moments = {four, four}},
                                  {.value = four, .grad = four, .moments = {four, five}},
                                  {.value = four, .grad = four, .moments = {four, halves}}};
  for (const AdamWParameter& p : wrong) EXPECT_THROW(adamw(s, update_of(p, step)), ContractError);
  EXPECT_THROW(adamw(s, update_of({.value = four, .grad = four, .moments = {four, four}}, a)), ContractError);
}

}  // namespace
}  // namespace octet::ops
