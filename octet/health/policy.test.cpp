#include "octet/health/policy.hpp"

#include <gtest/gtest.h>

#include "octet/health/story.testing.hpp"
#include "octet/telemetry/event_line.hpp"
#include "tests/testing/saved_state.hpp"

// The ladder on invented records: which actions it takes, their bounds and windows, and that its decisions follow from the record.

namespace octet::health {
namespace {
using Mode = RecoveryConfig::Mode;
using octet::testing::SavedState;
using testing::Disturb, testing::Step;

constexpr std::int64_t begin = 300;
const std::int64_t most_skips = RecoveryConfig().skip.most;

RecoveryConfig acting() {
  RecoveryConfig c;
  c.mode = Mode::act;
  return c;
}

/// A run as its policy sees it: rules fire, steps beyond its limits are skipped, and requests get the answers of `can`.
struct WatchedRun {
  RecoveryConfig config = acting();
  AlertsConfig alerts{};
  Disturb disturb{};
  std::function<bool(const Request&)> can = [](const Request&) { return false; };

  Monitor monitor{alerts, testing::subject_of(700)};
  Policy policy{config, alerts, testing::subject_of(700)};
  std::vector<telemetry::RecoveryEvent> events{};
  std::vector<double> rates{};        // factors of the learning rate, per step
  std::vector<std::int64_t> skips{};  // steps
  bool stopped = false;

  void add(const Policy::Events& more) { events.insert(events.end(), more.begin(), more.end()); }
  void step(std::int64_t number) {
    static const std::vector<float> noise = octet::testing::gaussian(10007, 20);
    Step s = testing::healthy_step(number, noise);
    s.step.step = s.scales.step = s.health.step = number;
    if (disturb) disturb(s);
    const Orders orders = policy.orders();
    rates.push_back(orders.rate_factor);
    s.step.limited = !s.step.skipped && orders.limits.exceeded(s.step.loss, s.step.grad_norm);
    s.step.skipped |= s.step.limited;
    if (s.step.limited) skips.push_back(number);
    take(s.scales);
    if (number % testing::measured_every == 0) take(s.health);
    for (telemetry::IncidentEvent e : s.incidents) e.step = number, take(e);
    take(s.step);
    add(policy.take(s.step));
    while (policy.request().action != RecoveryAction::none && !stopped) {
      const Request r = policy.request();
      stopped = r.action == RecoveryAction::stop;
      const bool done = stopped || can(r);
      add(policy.answer(
          {.done = done, .text = done ? "done" : "impossible", .back_to = r.action == RecoveryAction::roll_back ? r.before - 1 : -1}));
    }
  }
  void take(const telemetry::Event& e) {
    for (const telemetry::AlertEvent& a : monitor.take(e)) policy.take(a);
  }
  void steps(std::int64_t from, std::int64_t to) {
    for (std::int64_t s = from; s <= to && !stopped; ++s) step(s);
  }
  std::vector<std::string> story() const {
    std::vector<std::string> out;
    for (const telemetry::RecoveryEvent& e : events) out.push_back(e.rung + " " + e.result);
    return out;
  }
};
using Story = std::vector<std::string>;

Story after_skips(const std::string& result, const Story& rest) {
  Story out(std::size_t(most_skips), "skip " + result);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Disturb loss_of(double more, std::int64_t from, std::int64_t steps) {
  return [=](Step& s) {
    if (s.step.step >= from && s.step.step < from + steps) s.step.loss += more;
  };
}

TEST(Policy, SkipsTheStepOfASpikeAndTellsWhy) {
  WatchedRun run{.disturb = loss_of(1, begin, 1)};
  run.steps(1, 400);
  EXPECT_EQ(run.skips, std::vector<std::int64_t>{begin});
  EXPECT_EQ(run.story(), (Story{"skip done", "skip recovered"}));
  EXPECT_EQ(run.events[0].rule, "loss_spike");
  EXPECT_EQ(run.events[0].alert_step, begin);
  EXPECT_EQ(run.events[1].step, begin + 8);
}

TEST(Policy, DoesNothingInAHealthyRunNorAboutTheMachine) {
  WatchedRun run;
  run.disturb = [](Step& s) {
    if (s.step.step > begin) s.step.tokens_per_second /= 3, s.step.memory_bytes = std::int64_t(1) << 40;
  };
  run.steps(1, 700);
  EXPECT_TRUE(run.events.empty()) << run.events[0].text;
}

TEST(Policy, ClimbsTheLadderWhileAnIncidentPersistsAndEndsTheRun) {
  WatchedRun run{.disturb = loss_of(1, begin, 1000)};
  run.steps(1, 700);
  EXPECT_EQ(run.skips.size(), std::size_t(run.config.skip.most));
  EXPECT_EQ(run.story(), after_skips("done", {"rate done", "layers refused", "roll_back refused", "stop done"}));
  EXPECT_TRUE(run.stopped);
  EXPECT_EQ(run.events.back().step, begin + most_skips + run.config.patience);
}

TEST(Policy, LowersTheRateForItsStepsAndRestoresIt) {
  WatchedRun run{.disturb = loss_of(1, begin, most_skips + 2)};
  run.steps(1, 500);
  EXPECT_EQ(run.story(), after_skips("done", {"rate done", "rate recovered", "rate ended"}));
  const std::int64_t lowered = begin + most_skips;
  for (std::int64_t s = 1; s <= 500; ++s)
    EXPECT_EQ(run.rates[std::size_t(s - 1)], s > lowered && s <= lowered + run.config.rate.steps ? 0.5 : 1) << s;
}

TEST(Policy, GoesBackBeforeTheIncidentAndPassesOverItsData) {
  WatchedRun run{.disturb = loss_of(1, begin, 1000)};
  std::int64_t asked = 0;
  run.can = [&](const Request& r) { return r.action == RecoveryAction::roll_back && (asked = r.before, true); };
  for (std::int64_t s = 1; s <= 400 && asked == 0; ++s) run.step(s);
  EXPECT_EQ(asked, begin - run.config.roll_back.before);
  EXPECT_EQ(run.events.back().back_to, asked - 1);
  const std::int64_t last = run.events.back().step;
  run.disturb = {};
  EXPECT_EQ(run.policy.orders().pass_data, last - asked + 1) << "the next step is the first of the incident";
  run.step(asked);
  EXPECT_EQ(run.policy.orders().pass_data, 0);
  EXPECT_FALSE(run.policy.orders().incident);
  EXPECT_EQ(run.policy.orders().rate_factor, 0.5) << "a window in force continues";
}

TEST(Policy, TakesTheLayersOfAlertsAndReturnsThemThoughTheLossIsGood) {
  WatchedRun run;
  run.config.layers.steps = 50;
  run.policy = Policy(run.config, run.alerts, testing::subject_of(700));
  run.disturb = [](Step& s) {
    if (s.step.step >= begin && s.step.step < begin + 40) s.health.saturated[1] = 0.002f;
  };
  std::vector<std::vector<std::string>> asked;
  run.can = [&](const Request& r) { return asked.push_back(r.layers), true; };
  run.steps(1, 420);
  EXPECT_EQ(asked, (std::vector<std::vector<std::string>>{{"layers.0.mlp.down"}, {}}));
  EXPECT_EQ(run.story(), (Story{"layers done", "layers recovered", "layers ended"}));
  run.can = [](const Request&) { return false; };
  run.disturb = [](Step& s) { s.health.saturated[1] = 0.002f; };
  run.steps(421, 600);
  EXPECT_EQ(run.events[3].rung + run.events[3].result, "layersrefused");
  EXPECT_FALSE(run.stopped) << "a run whose loss is good is not ended";
}

TEST(Policy, SkippedStepsThatPersistLeadToTheCheckpoint) {
  WatchedRun run;
  run.config.patience = 3;
  run.policy = Policy(run.config, run.alerts, testing::subject_of(700));
  run.disturb = [](Step& s) {
    if (s.step.step < begin) return;
    s.step.skipped = true, s.step.loss = NAN;
    s.incidents.push_back({.kind = "skipped", .path = "embedding.weight", .text = "not finite"});
  };
  run.can = [](const Request& r) { return r.action == RecoveryAction::roll_back; };
  run.steps(1, begin + 3);
  EXPECT_EQ(run.story(), (Story{"skip done", "rate refused", "layers refused", "roll_back done"}));
  EXPECT_EQ(run.events[0].path, "embedding.weight");
}

TEST(Policy, ALayerIsNamedByItsOutputsAndItsParametersToo) {
  const std::vector<std::string> layers = {"layers.1", "layers.1.attn.out", "layers.1.attn"};
  for (const char* end : {"", ".x", ".w", ".dy", ".y", ".dx", ".saved", ".weight", ".weight.grad", ".weight.m"})
    EXPECT_EQ(layer_of("layers.1.attn.out" + std::string(end), layers), "layers.1.attn.out") << end;
  for (const char* other : {"layers.10.attn.out.x", "norm.y", "embedding.weight", "layers.1x", ""}) EXPECT_EQ(layer_of(other, layers), "");
  WatchedRun run;
  run.config.patience = 3;
  run.policy = Policy(run.config, run.alerts, testing::subject_of(700));
  run.disturb = [](Step& s) {
    if (s.step.step < begin) return;
    s.step.skipped = true, s.step.loss = NAN;
    s.incidents.push_back({.kind = "skipped", .path = "layers.0.mlp.down.y", .text = "not finite"});
  };
  std::vector<std::vector<std::string>> asked;
  run.can = [&](const Request& r) { return asked.push_back(r.layers), true; };
  run.steps(1, begin + 3);
  EXPECT_EQ(run.story(), (Story{"skip done", "rate refused", "layers done"}));
  EXPECT_EQ(asked, (std::vector<std::vector<std::string>>{{"layers.0.mlp.down"}}));
}

TEST(Policy, ALossThatStaysHighLeadsToACheckpointAndOneFromBeforeTheAlertIsBetterThanNone) {
  WatchedRun run{.disturb = loss_of(0.12, begin, 1000)};  // too little for loss_spike
  std::vector<std::int64_t> asked;
  run.can = [&](const Request& r) { return r.action == RecoveryAction::roll_back && (asked.push_back(r.before), asked.size() == 2); };
  for (std::int64_t s = 1; s <= 400 && asked.empty(); ++s) run.step(s);
  const std::int64_t alert = run.events.at(0).alert_step;
  EXPECT_EQ(run.events[0].rule, "loss_rise");
  EXPECT_EQ(run.story(), (Story{"rate done", "layers refused", "roll_back refused", "roll_back done"}));
  EXPECT_EQ(asked, (std::vector<std::int64_t>{alert - rule("loss_rise").lead - 1, alert - 1}));
  EXPECT_LE(asked[0], begin);
}

TEST(Policy, ASpikeAfterWhichTheLossStaysHighLeadsToACheckpoint) {
  AlertsConfig alerts;
  alerts.set_threshold("loss_rise", 1.5);
  WatchedRun run{.alerts = alerts};
  run.disturb = [](Step& s) { loss_of(1, begin, 1)(s), loss_of(0.1, begin + 1, 1000)(s); };  // the latter is good by its limits
  run.can = [&](const Request& r) { return r.action == RecoveryAction::roll_back; };
  for (std::int64_t s = 1; s <= 400 && (run.events.empty() || run.events.back().rung != "roll_back"); ++s) run.step(s);
  EXPECT_EQ(run.story(), (Story{"skip done", "rate done", "layers refused", "roll_back done"}));
  EXPECT_LT(run.events.back().back_to, begin);
}

TEST(Policy, ALossThatIsHigherButWithinTheLimitsEndsNoRun) {
  WatchedRun run{.disturb = loss_of(0.12, begin, 1000)};
  run.steps(1, 600);
  EXPECT_FALSE(run.stopped);
  EXPECT_EQ(run.events.at(0).rule, "loss_rise");
}

TEST(Policy, ThatWasOffHasLimitsAtOnce) {
  WatchedRun run;
  run.config.mode = Mode::off;
  run.policy = Policy(run.config, run.alerts, testing::subject_of(700));
  run.steps(1, begin - 1);
  EXPECT_TRUE(std::isinf(run.policy.orders().limits.loss) && run.events.empty());
  const SavedState off = SavedState::of(run.policy);
  run.policy = Policy(acting(), run.alerts, testing::subject_of(700));
  off.restore(run.policy);
  run.disturb = loss_of(1, begin, 1);
  run.steps(begin, begin + 20);
  EXPECT_EQ(run.story(), (Story{"skip done", "skip recovered"}));
}

TEST(Policy, AdvisesTheSameAndChangesNothing) {
  WatchedRun run{.disturb = loss_of(1, begin, 1000)};
  run.config.mode = Mode::advise;
  run.policy = Policy(run.config, run.alerts, testing::subject_of(700));
  run.steps(1, 700);
  EXPECT_TRUE(run.skips.empty());
  EXPECT_TRUE(std::ranges::all_of(run.rates, [](double r) { return r == 1; }));
  EXPECT_FALSE(run.stopped);
  const Story wanted = after_skips("advised", {"rate advised", "layers refused", "roll_back advised", "stop advised"});
  Story first(run.story());
  ASSERT_GE(first.size(), wanted.size());
  first.resize(wanted.size());
  EXPECT_EQ(first, wanted);
}

TEST(Policy, OfARunThatWasResumedDecidesAlike) {
  const Disturb disturb = [](Step& s) { loss_of(1, begin, most_skips + 2)(s), loss_of(1, begin + 60, 30)(s); };
  WatchedRun whole{.disturb = disturb};
  whole.steps(1, 420);
  for (const std::int64_t cut : {begin - 1, begin, begin + 2, begin + 5, begin + 30, begin + 66, begin + 75, begin + 90}) {
    WatchedRun before{.disturb = disturb}, after{.disturb = disturb};
    before.steps(1, cut);
    SavedState::of(before.monitor).restore(after.monitor);
    SavedState::of(before.policy).restore(after.policy);
    after.stopped = before.stopped;
    after.steps(cut + 1, 420);
    ASSERT_EQ(before.events.size() + after.events.size(), whole.events.size()) << cut;
    for (std::size_t i = 0; i < after.events.size(); ++i)
      EXPECT_EQ(telemetry::event_line(after.events[i]), telemetry::event_line(whole.events[before.events.size() + i])) << cut;
    EXPECT_EQ(after.stopped, whole.stopped);
  }
}

TEST(PassedData, IsThatOfTheStepsAsTheRunHadIt) {
  PassedData data;
  data.add(60, 64);
  EXPECT_EQ(data.before(60), 5);
  EXPECT_EQ(data.before(61), 0);
  data.add(60, 61);  // the run came there again, and its steps 60 and 61 had other data
  EXPECT_EQ(data.before(60), 7);
  data.add(55, 62);
  EXPECT_EQ(data.before(55), 15) << "seven of the steps from 55 on were passed over in between";
  EXPECT_EQ(data.before(60), 0);
}

}  // namespace
}  // namespace octet::health
