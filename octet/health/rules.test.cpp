#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/health/families.hpp"
#include "octet/health/story.testing.hpp"
#include "octet/telemetry/event_line.hpp"
#include "tests/testing/saved_state.hpp"

// Every rule on invented records: it fires in time and once, is silent on a disturbance just below its threshold, and is the same in a run
// that was resumed.

namespace octet::health {
namespace {
using telemetry::AlertEvent;
using testing::alerts_of, testing::Disturb, testing::record_of, testing::Step;

constexpr std::int64_t begin = 300;

struct Case {
  const char* rule;
  std::int64_t within;  // steps from `begin`
  const char* path;
  Disturb above, below;  // from step `begin` on
  std::int64_t steps = 700;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.rule; }

double since(const Step& s) { return double(s.step.step - begin); }
bool at_begin(const Step& s) { return s.step.step == begin; }

// The loss without noise, plus `more`, at the first step.
Disturb one_loss(double more) {
  return [more](Step& s) {
    if (at_begin(s)) s.step.loss = 2 + 2 * std::exp(-3.0) + more;
  };
}
// The same above, in five steps: less than a spike.
Disturb five_losses(double more) {
  return [more](Step& s) {
    if (s.step.step < begin + 5) s.step.loss = 2 + 2 * std::exp(-3.0) + more;
  };
}
// The same below, in two steps.
Disturb two_losses(double less) {
  return [less](Step& s) {
    if (s.step.step < begin + 2) s.step.loss = 2 + 2 * std::exp(-3.0) - less;
  };
}
// A loss that falls by `slope` per step as a fraction.
Disturb slow_fall(double slope) {
  return [slope](Step& s) { s.step.loss = 2.1 * (1 - slope * since(s)) + 0.05 * (s.step.loss - 2); };
}
Disturb skips(bool lowers_loss_scale) {
  return [lowers_loss_scale](Step& s) {
    if (since(s) > 2) return;
    s.step.skipped = true;
    s.incidents.push_back({.kind = "skipped", .path = "layers.0.mlp.down.y", .text = "step skipped"});
    if (lowers_loss_scale) s.incidents.push_back({.kind = "loss_scale"});
  };
}
// The weight grows to `by` times its maximum at `begin`, by which its scale was made.
Disturb grows_under_a_frozen_scale(float by) {
  return [by](Step& s) { s.scales.amax[1] = by, s.scales.scale_min[1] = s.scales.scale_max[1] = 448; };
}
Disturb norm_grows(double to) {
  return [to](Step& s) { s.step.grad_norm *= std::min(to, std::exp(since(s) / 100)); };
}
Disturb loss_scale_falls(int times) {
  return [times](Step& s) { s.step.loss_scale = std::ldexp(65536, -std::min(times, int(since(s) / 5))); };
}
Disturb mu_falls(int times) {
  return [times](Step& s) { s.shared_scales.mu[1] = std::ldexp(0.5f, -std::min(times, int(since(s) / 7))); };
}
// Expert 2 of layer 3 has so many of 800 choices, and the others share the rest.
Disturb chosen(std::int64_t count) {
  return [count](Step& s) {
    for (std::size_t e = 8; e < 16; ++e) s.experts.counts[e] = e == 10 ? count : (800 - count) / 7;
  };
}
Disturb others_wait(float seconds) {
  return [seconds](Step& s) { s.ranks.waited = {seconds, seconds, 0, seconds}; };
}
Disturb second_gpu(float degrees, std::int64_t reasons) {
  return [=](Step& s) { s.gpus.temperature[1] = degrees, s.gpus.throttling[1] = reasons; };
}
Disturb held(double share) {
  return [share](Step& s) { s.step.memory_bytes = std::int64_t(1e10 * share), s.machine.memory_free = 1e10 * (1 - share); };
}

std::vector<Case> cases() {
  return {
      {"loss_spike", 0, "", one_loss(0.30), one_loss(0.15)},
      {"loss_rise", 4, "", five_losses(0.15), five_losses(0.02)},
      {"loss_drop", 1, "", two_losses(0.30), two_losses(0.03)},
      {"one_token", 0, "", [](Step& s) { s.step.one_token = 0.8; }, [](Step& s) { s.step.one_token = 0.7; }},
      {"loss_plateau", 1050, "", slow_fall(0), slow_fall(2e-5), 2000},
      {"divergence", 15, "", [](Step& s) { s.step.loss *= 1.45; }, [](Step& s) { s.step.loss *= 1.22; }},
      {"nonfinite", 0, "layers.0.mlp.down.y", skips(false), skips(true)},
      {"grad_norm_spike", 0, "", [](Step& s) { s.step.grad_norm *= at_begin(s) ? 7.3 : 1; },
       [](Step& s) { s.step.grad_norm *= at_begin(s) ? 4 : 1; }},
      {"grad_norm_growth", 256, "", norm_grows(1e9), norm_grows(3)},
      {"param_norm_growth", 100, "", [](Step& s) { s.step.param_norm *= std::pow(1.006, since(s)); },
       [](Step& s) { s.step.param_norm *= std::pow(1.0035, since(s)); }},
      {"scale_drop", 0, "layers.0.mlp.down.x", [](Step& s) { s.scales.amax[0] = at_begin(s) ? 40 : s.scales.amax[0]; },
       [](Step& s) { s.scales.amax[0] = at_begin(s) ? 10 : s.scales.amax[0]; }},
      {"scale_rise", 3, "layers.0.mlp.down.x", [](Step& s) { s.scales.amax[0] /= 40; }, [](Step& s) { s.scales.amax[0] /= 8; }},
      {"scale_frozen", 3, "layers.0.mlp.down.w", grows_under_a_frozen_scale(1.6f), grows_under_a_frozen_scale(1.1f)},
      {"saturated", 5, "layers.0.mlp.down.w", [](Step& s) { s.health.saturated[1] = 0.002f; },
       [](Step& s) { s.health.saturated[1] = 0.0009f; }},
      {"flushed", 5, "layers.0.mlp.down.dy", [](Step& s) { s.health.flushed[2] = 0.2f; }, [](Step& s) { s.health.flushed[2] = 0.09f; }},
      {"sqnr", 5, "layers.0.mlp.down.x", [](Step& s) { s.health.sqnr_db[0] = 21; }, [](Step& s) { s.health.sqnr_db[0] = 23; }},
      {"amax_stuck", 26, "layers.0.mlp.down.dy", [](Step& s) { s.scales.amax[2] = 1.5f; },
       [](Step& s) { s.scales.amax[2] = 1 + float(s.step.step / 20) / 100; }},
      {"loss_scale_falls", 20, "", loss_scale_falls(9), loss_scale_falls(3)},
      {"mu_falls", 30, "layers.0.mlp.down.weight", mu_falls(9), mu_falls(3)},
      {"expert_idle", 25, "layers.3.mlp.experts.2", chosen(1), chosen(3)},
      {"expert_overload", 25, "layers.3.mlp.experts.2", chosen(450), chosen(390)},
      {"router_collapse", 15, "layers.3.mlp.router", chosen(760), chosen(560)},
      {"throughput", 75, "", [](Step& s) { s.step.tokens_per_second *= 0.7; }, [](Step& s) { s.step.tokens_per_second *= 0.85; }},
      {"slow_rank", 25, "rank 2", others_wait(0.5f), others_wait(0.25f)},
      {"gpu_hot", 15, "rank 1", second_gpu(86, 0), second_gpu(84, 0)},
      {"gpu_throttled", 15, "rank 1", second_gpu(70, telemetry::heat | telemetry::power_cap),
       second_gpu(70, telemetry::power_cap | telemetry::sync_boost | telemetry::set_clocks)},
      {"memory", 5, "", held(0.96), held(0.94)},
      {"disk", 130, "", [](Step& s) { s.machine.disk_free -= 4e9 * std::min(since(s), 249.0); },
       [](Step& s) { s.machine.disk_free -= 1e9 * since(s); }},
      {"checkpoint_age", 185, "", [](Step& s) { s.machine.checkpoint_age = 10 * since(s); },
       [](Step& s) { s.machine.checkpoint_age = 1700; }},
      {"data_repeated", 0, "", [](Step& s) { s.machine.epoch = 1.2; }, [](Step& s) { s.machine.epoch = 0.99; }},
  };
}

std::vector<telemetry::Event> record(const Case& c, const Disturb& disturb) {
  return record_of(c.steps, [&](Step& s) {
    if (s.step.step >= begin) disturb(s);
  });
}

std::vector<AlertEvent> of_rule(const std::vector<AlertEvent>& all, const std::string& rule) {
  std::vector<AlertEvent> out;
  for (const AlertEvent& a : all)
    if (a.rule == rule) out.push_back(a);
  return out;
}

std::string lines_of(const std::vector<AlertEvent>& alerts) {
  std::string out;
  for (const AlertEvent& a : alerts) out += telemetry::event_line(a) + "\n";
  return out;
}

class Rules : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Health, Rules, ::testing::ValuesIn(cases()), [](const auto& c) { return std::string(c.param.rule); });

TEST_P(Rules, FireInTimeOnceAndNameThePlace) {
  const Case& c = GetParam();
  Monitor monitor({}, testing::subject_of(c.steps));
  const std::vector<AlertEvent> all = alerts_of(monitor, record(c, c.above)), own = of_rule(all, c.rule);
  ASSERT_EQ(own.size(), 1u) << lines_of(all);
  EXPECT_GE(own[0].step, begin);
  EXPECT_LE(own[0].step, begin + c.within);
  EXPECT_EQ(own[0].time, double(own[0].step)) << "that of the event";
  EXPECT_EQ(own[0].path, c.path);
  EXPECT_EQ(own[0].severity, rule(c.rule).severity);
  EXPECT_EQ(own[0].threshold, rule(c.rule).threshold);
  if (own[0].rule != std::string("flushed")) EXPECT_EQ(own[0].remedy, rule(c.rule).remedy);
  EXPECT_FALSE(own[0].text.empty());
}

TEST_P(Rules, AreSilentJustBelowTheirThreshold) {
  const Case& c = GetParam();
  Monitor monitor({}, testing::subject_of(c.steps));
  const std::vector<AlertEvent> all = alerts_of(monitor, record(c, c.below));
  EXPECT_TRUE(of_rule(all, c.rule).empty()) << lines_of(all);
}

TEST_P(Rules, AreSilentWithoutAThreshold) {
  const Case& c = GetParam();
  AlertsConfig config;
  config.set_threshold(c.rule, 0);
  Monitor monitor(config, testing::subject_of(c.steps));
  EXPECT_TRUE(of_rule(alerts_of(monitor, record(c, c.above)), c.rule).empty());
}

TEST_P(Rules, GiveTheSameAlertsInARunThatWasResumed) {
  const Case& c = GetParam();
  const std::vector<telemetry::Event> events = record(c, c.above);
  Monitor whole({}, testing::subject_of(c.steps));
  const std::string wanted = lines_of(alerts_of(whole, events));
  for (const double share : {0.2, 0.43, 0.44, 0.5, 0.8}) {
    // A checkpoint is made after a step.
    std::size_t cut = std::size_t(share * double(events.size()));
    while (!std::holds_alternative<telemetry::StepEvent>(events[cut - 1])) ++cut;
    Monitor before({}, testing::subject_of(c.steps)), after({}, testing::subject_of(c.steps));
    std::vector<AlertEvent> alerts = alerts_of(before, std::span(events).first(cut));
    octet::testing::SavedState::of(before).restore(after);
    testing::append(alerts, alerts_of(after, std::span(events).subspan(cut)));
    EXPECT_EQ(lines_of(alerts), wanted) << "cut at event " << cut;
  }
}

TEST(HealthRules, ALossThatRisesInTheFirstStepsIsASpike) {
  const auto spikes_of = [](const std::vector<double>& losses) {
    Monitor monitor({}, testing::subject_of(400));
    const auto story = record_of(std::int64_t(losses.size()), [&](Step& s) { s.step.loss = losses[std::size_t(s.step.step - 1)]; });
    return of_rule(alerts_of(monitor, story), "loss_spike");
  };
  std::vector<double> rises = {3.8, 3.82, 3.79};
  while (rises.size() < 13) rises.push_back(rises.back() + 0.42);  // to 8 by step 13
  const auto found = spikes_of(rises);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_LE(found[0].step, 13);
  EXPECT_NE(found[0].text.find("the lowest of the first"), std::string::npos) << found[0].text;
  EXPECT_EQ(spikes_of({5.5, 5.4, 5.3, 5.2, 8}).size(), 1u) << "one step";
  EXPECT_TRUE(spikes_of({5.5, 5.6, 5.1, 5.4, 4.9, 5.3, 4.6, 4.9, 4.4, 5.2, 4.3, 4.2, 4.8, 4.1}).empty()) << "noise";
  EXPECT_TRUE(spikes_of({10.4, 9.1, 8, 7.2, 6.6, 6.1, 7.4, 5.7, 5.4, 5.3}).empty()) << "one batch of a loss that falls fast";
}

TEST(HealthRules, ANormOfLargeDeviationNeedsALargerSpike) {
  const auto spikes_of = [](double spread) {
    Monitor monitor({}, testing::subject_of(400));
    const std::vector<float> noise = octet::testing::gaussian(1000, 3);
    const auto story = record_of(
        300, [&](Step& s) { s.step.grad_norm = s.step.step == 200 ? 8 : std::exp(spread * double(noise[std::size_t(s.step.step)])); });
    return of_rule(alerts_of(monitor, story), "grad_norm_spike").size();
  };
  EXPECT_EQ(spikes_of(0.15), 1u);
  EXPECT_EQ(spikes_of(0.3), 0u);
}

// E5M2 is no remedy of a tensor that has it, nor are blocks, nor a loss scale, which the scale of the tensor cancels.
TEST(HealthRules, AdviseOnlyWhatTheTensorDoesNotHave) {
  const auto remedy = [](const char* rule, std::size_t tensor, const char* format, const char* block) {
    Subject subject = testing::subject_of(400);
    subject.quantizers[tensor].format = format, subject.quantizers[tensor].block = block;
    Monitor monitor({}, subject);
    const auto story = record_of(400, [&](Step& s) {
      if (s.step.step < begin) return;
      s.health.flushed[tensor] = rule == std::string("flushed") ? 0.2f : 0;
      if (rule == std::string("sqnr")) s.health.sqnr_db[tensor] = 1;
    });
    const auto own = of_rule(alerts_of(monitor, story), rule);
    return own.size() == 1 ? own[0].remedy : "no alert";
  };
  EXPECT_EQ(remedy("flushed", 2, "e5m2", "tensor"), "Use blocks for this operand (recipe.rules), or keep its layer in BF16.");
  EXPECT_EQ(remedy("flushed", 2, "e4m3", "tensor"), "Use E5M2 or blocks for this operand (recipe.rules), or keep its layer in BF16.");
  EXPECT_EQ(remedy("flushed", 2, "e4m3", "1x128"), "Use E5M2 for this operand (recipe.rules), or keep its layer in BF16.");
  EXPECT_EQ(remedy("flushed", 2, "e5m2", "1x32"), "Keep its layer in BF16 (recipe.keep_bf16).");
  EXPECT_EQ(remedy("sqnr", 0, "e4m3", "row"), rule("sqnr").remedy);
  EXPECT_EQ(remedy("sqnr", 0, "e4m3", "1x128"), "Keep its layer in BF16 (recipe.keep_bf16).");
}

// Ever faster, and more per step than the noise, as at the begin of training.
TEST(HealthRules, TellADropFromALossThatFallsFast) {
  const auto drops_in = [](const std::vector<std::int64_t>& low) {
    Monitor monitor({}, testing::subject_of(120));
    const auto story = record_of(120, [&](Step& s) {
      s.step.loss = 8 - 4e-4 * std::pow(double(s.step.step), 2) + 0.2 * std::fmod(s.step.loss, 0.1);
      if (std::ranges::count(low, s.step.step)) s.step.loss *= 0.9;
    });
    return of_rule(alerts_of(monitor, story), "loss_drop").size();
  };
  EXPECT_EQ(drops_in({}), 0u);
  EXPECT_EQ(drops_in({100}), 0u);
  EXPECT_EQ(drops_in({100, 101}), 1u);
}

TEST(HealthRules, AllHaveACaseHere) {
  std::vector<std::string> tested, known;
  for (const Case& c : cases()) tested.emplace_back(c.rule);
  for (const AlertRule& r : alert_rules()) known.emplace_back(r.name);
  EXPECT_EQ(tested, known);
}

TEST(HealthRules, AreSilentInAHealthyRun) {
  Monitor monitor({}, testing::subject_of(1000));
  const std::vector<AlertEvent> all = alerts_of(monitor, record_of(999, nullptr));
  EXPECT_TRUE(all.empty()) << lines_of(all);
}

TEST(HealthRules, DoNotDependOnTheTextOfTheRecord) {
  const Case c = cases()[5];
  Monitor live({}, testing::subject_of(c.steps)), reader({}, testing::subject_of(c.steps));
  const std::vector<telemetry::Event> events = record(c, c.above);
  std::vector<telemetry::Event> read;
  for (const telemetry::Event& e : events) read.push_back(telemetry::parse_event(telemetry::event_line(e), "line"));
  EXPECT_EQ(lines_of(alerts_of(reader, read)), lines_of(alerts_of(live, events)));
}

TEST(HealthRules, APlateauWithAFallingGradientNormIsNone) {
  const auto events = record_of(2000, [](Step& s) {
    if (s.step.step < begin) return;
    slow_fall(0)(s);
    s.step.grad_norm *= std::exp(-since(s) / 2000);
  });
  Monitor monitor({}, testing::subject_of(2000));
  EXPECT_TRUE(of_rule(alerts_of(monitor, events), "loss_plateau").empty());
}

TEST(HealthRules, AGradientMayChangeByTheSquareOfTheFactor) {
  for (const double factor : {100.0, 600.0}) {
    Monitor monitor({}, testing::subject_of(700));
    const auto events = record_of(400, [&](Step& s) {
      if (at_begin(s)) s.scales.amax[2] = float(factor);
    });
    const std::vector<AlertEvent> alerts = of_rule(alerts_of(monitor, events), "scale_drop");
    EXPECT_EQ(alerts.size(), factor > 256 ? 1u : 0u) << factor;
    for (const AlertEvent& a : alerts) EXPECT_EQ(a.path, "layers.0.mlp.down.dy");
  }
}

TEST(HealthRules, TheWorstTensorIsNamedAndTheOthersAreCounted) {
  Monitor monitor({}, testing::subject_of(700));
  const auto events = record_of(400, [](Step& s) {
    if (s.step.step >= begin) s.health.saturated[0] = 0.002f, s.health.saturated[1] = 0.5f;
  });
  const std::vector<AlertEvent> alerts = of_rule(alerts_of(monitor, events), "saturated");
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_EQ(alerts[0].path, "layers.0.mlp.down.w");
  EXPECT_NE(alerts[0].text.find("(and 1 more tensors)"), std::string::npos) << alerts[0].text;
}

// Activations before gradients, and these from the last layer to the first, however large the maxima are.
TEST(HealthRules, AnOutlierIsNamedWhereTheStepMetItFirst) {
  const auto named = [](std::vector<std::pair<std::size_t, float>> maxima) {
    Subject subject = testing::subject_of(700);
    for (const char* operand : {"x", "w", "dy"}) subject.quantizers.push_back({"layers.1.mlp.down", operand, "e4m3", "tensor"});
    Monitor monitor({}, subject);
    const auto events = record_of(400, [&](Step& s) {
      for (auto* of : {&s.scales.amax, &s.scales.scale_min, &s.scales.scale_max}) of->insert(of->end(), of->begin(), of->begin() + 3);
      if (!at_begin(s)) return;
      for (const auto& [tensor, maximum] : maxima) s.scales.amax[tensor] = maximum;
    });
    const std::vector<AlertEvent> alerts = of_rule(alerts_of(monitor, events), "scale_drop");
    return alerts.size() == 1 ? alerts[0].path : format("{} alerts", alerts.size());
  };
  EXPECT_EQ(named({{0, 100.0f}, {3, 1e6f}, {2, 1e9f}, {5, 1e9f}}), "layers.0.mlp.down.x");
  EXPECT_EQ(named({{2, 1e9f}, {5, 1e3f}}), "layers.1.mlp.down.dy");
  EXPECT_EQ(named({{0, 1e6f}, {4, 100.0f}}), "layers.1.mlp.down.w");
}

// A history has no maxima of a skipped step.
TEST(HealthRules, AScaleMayIgnoreASkippedStep) {
  for (const bool skipped : {false, true}) {
    Monitor monitor({}, testing::subject_of(700));
    const auto events = record_of(400, [&](Step& s) {
      s.scales.scale_min[0] = 448 / 2.0f;
      if (s.step.step >= begin && s.step.step < begin + 4) s.scales.amax[0] = 3, s.step.skipped = skipped;
    });
    EXPECT_EQ(of_rule(alerts_of(monitor, events), "scale_frozen").size(), skipped ? 0u : 1u);
  }
}

TEST(HealthRules, OfADisabledMonitorAreSilentAndTheirStateHasTheSameNames) {
  AlertsConfig off;
  off.enabled = false;
  Monitor monitor(off, testing::subject_of(700)), other({}, testing::subject_of(700));
  const Case c = cases()[5];
  EXPECT_TRUE(alerts_of(monitor, record(c, c.above)).empty());
  EXPECT_EQ(octet::testing::SavedState::of(monitor).names(), octet::testing::SavedState::of(other).names());
}

TEST(Alarm, MakesOneAlertOfOneCause) {
  AlertsConfig config;
  const std::int64_t rest = rule("scale_drop").rest;
  Alarm alarm("scale_drop", config, 2);
  const auto sees = [&](double first, double second) {
    const double excess[] = {first, second};
    return alarm.fires(std::span(excess));
  };
  EXPECT_FALSE(sees(0.99, 0));
  EXPECT_EQ(sees(1, 2), std::optional<std::size_t>(1)) << "the worst";
  for (int i = 0; i < 3 * rest; ++i) EXPECT_FALSE(sees(0, 5)) << "it lasts";
  EXPECT_EQ(sees(1, 5), std::optional<std::size_t>(0)) << "another cause";
  for (int i = 0; i < rest; ++i) EXPECT_FALSE(sees(0, 0));
  EXPECT_EQ(sees(0, 1), std::optional<std::size_t>(1)) << "again after rest";
}

}  // namespace
}  // namespace octet::health
