#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "octet/telemetry/event_line.hpp"
#include "octet/train/checkpoint/state_copy.hpp"
#include "octet/train/run/recovery/recovery.testing.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/saved_state.hpp"

// Recovery in whole runs.

namespace octet::train {
namespace {
using octet::testing::error_of, octet::testing::has;
using telemetry::RecoveryEvent;
using namespace octet::train::testing;
using Mode = health::RecoveryConfig::Mode;

bool is_recovery(const std::string& line) { return has(line, "\"event\":\"recovery\""); }

std::vector<std::string> without_recovery(const std::string& folder) {
  std::vector<std::string> events = octet::testing::untimed_events(folder);
  std::erase_if(events, is_recovery);
  return events;
}

// Every step of the record, also those that follow again.
std::vector<telemetry::StepEvent> all_steps(const std::string& folder) {
  std::vector<telemetry::StepEvent> out;
  std::ifstream lines(folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);)
    if (has(line, "\"event\":\"step\"")) out.push_back(std::get<telemetry::StepEvent>(telemetry::parse_event(line, "")));
  return out;
}

TEST(RunRecovery, SkipsASpikeAndNothingElse) {
  Damaged runs;
  runs.config.recovery.skip.loss = 3;
  const std::string folder = runs.train().folder;
  const std::vector<RecoveryEvent> skips = recoveries(folder, "skip", "done");
  std::vector<std::int64_t> told, skipped;
  for (const RecoveryEvent& e : skips) told.push_back(e.step);
  for (const telemetry::StepEvent& e : all_steps(folder)) {
    EXPECT_EQ(e.skipped, e.limited);
    if (e.limited) skipped.push_back(e.step);
  }
  EXPECT_FALSE(told.empty());
  EXPECT_EQ(told, skipped);
  EXPECT_TRUE(telemetry::read_run(folder).incidents.empty()) << "a step beyond a limit is no incident of values that are not finite";
}

TEST(RunRecovery, TakesSeveralRungsInOneRun) {
  const SeveralRungs runs;
  const Outcome outcome = runs.train();
  EXPECT_EQ(outcome.state, telemetry::RunState::finished);
  EXPECT_EQ(outcome.end.step, runs.config.train.steps);
  const std::string& folder = outcome.folder;
  EXPECT_EQ(recoveries(folder, "skip", "done").size(), 1u);
  ASSERT_EQ(recoveries(folder, "rate", "done").size(), 1u);
  const std::vector<RecoveryEvent> back = recoveries(folder, "roll_back", "done");
  ASSERT_FALSE(back.empty());
  const std::vector<telemetry::StepEvent> steps = all_steps(folder);
  const auto rate_of = [&](std::size_t i) { return steps.at(i).learning_rate / float(runs.config.optim.learning_rate); };
  const auto at =
      std::size_t(std::ranges::find(steps, recoveries(folder, "rate", "done")[0].step, &telemetry::StepEvent::step) - steps.begin());
  EXPECT_TRUE(rate_of(at) == 1 && rate_of(at + 1) == 0.5 && rate_of(at + 20) == 0.5 && rate_of(at + 21) == 1);
  EXPECT_EQ(recoveries(folder, "rate", "ended").size(), 1u);
  // The step after the checkpoint has the same weights and data again; the data of the incident does not come again.
  const auto again = std::ranges::adjacent_find(steps, [](const auto& a, const auto& b) { return b.step <= a.step; });
  ASSERT_NE(again, steps.end());
  EXPECT_EQ(again->step, back[0].step);
  const std::int64_t next = back[0].back_to + 1, first = back[0].alert_step - runs.config.recovery.roll_back.before;
  EXPECT_EQ((again + 1)->step, next);
  EXPECT_TRUE(next >= first || (again + 1)->loss == std::ranges::find(steps, next, &telemetry::StepEvent::step)->loss);
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps) EXPECT_TRUE(e.step <= first || e.loss < 2) << e.step;
}

TEST(RunRecovery, OfAResumedRunIsThatOfOneThatNeverStopped) {
  SeveralRungs runs;
  const std::string whole = runs.train().folder;
  const std::int64_t last = runs.config.train.steps, lowered = recoveries(whole, "rate", "done").at(0).step / 10 * 10;
  const std::int64_t back = recoveries(whole, "roll_back", "done").at(0).back_to;
  for (const std::int64_t step : std::set<std::int64_t>{lowered, lowered + 10, back, last - 10}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}", step));
    CheckpointStore(checkpoint_folder(cut)).forget_after(step);
    runs.train(cut);
    testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(last), CheckpointStore(checkpoint_folder(cut)).path(last));
    EXPECT_EQ(octet::testing::untimed_events(whole), octet::testing::untimed_events(cut)) << step;
  }
}

TEST(RunRecovery, ThatAdvisesHasTheBitsOfARunWithoutIt) {
  SeveralRungs runs;
  runs.config.recovery.mode = Mode::advise;
  const std::string advised = runs.train().folder;
  runs.config.recovery.mode = Mode::off;
  const std::string off = runs.train().folder;
  EXPECT_FALSE(recoveries(advised, "roll_back", "advised").empty());
  EXPECT_TRUE(telemetry::read_run(off).recoveries.empty());
  EXPECT_EQ(without_recovery(advised), without_recovery(off));
  const auto state_of = [&](const std::string& folder) {
    return io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(folder)).path(runs.config.train.steps) + "/state.safetensors");
  };
  const auto a = state_of(advised), b = state_of(off);
  for (const io::TensorView& t : a.tensors())
    EXPECT_TRUE(t.name.starts_with("recovery.") || testing::is_time(t.name) || std::ranges::equal(t.bytes, b.find(t.name)->bytes))
        << t.name;
}

TEST(RunRecovery, FollowsFromTheRecordAlone) {
  const SeveralRungs runs;
  const std::string folder = runs.train().folder;
  const health::Subject subject = watch_of(runs.config, telemetry::read_run_facts(folder + "/run.json"), true).subject;
  health::Monitor monitor(runs.config.alerts, subject);
  health::Policy policy(runs.config.recovery, runs.config.alerts, subject);
  std::vector<std::string> made, written;
  const auto add = [&](const health::Policy::Events& events) {
    for (const RecoveryEvent& e : events) made.push_back(telemetry::event_line(e));
  };
  std::ifstream lines(folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const telemetry::Event event = telemetry::parse_event(line, "");
    if (const auto* e = std::get_if<RecoveryEvent>(&event)) {
      written.push_back(line);
      if (policy.request().action != health::RecoveryAction::none && made.size() < written.size())
        add(policy.answer({.done = e->result == "done", .text = e->text, .back_to = e->back_to}));
    }
    for (const telemetry::AlertEvent& alert : monitor.take(event)) policy.take(alert);
    if (const auto* step = std::get_if<telemetry::StepEvent>(&event)) add(policy.take(*step));
  }
  EXPECT_FALSE(written.empty());
  EXPECT_EQ(made, written);
}

// Two ranks, with the data of a step of one.
struct Two {
  std::int64_t tensor = 1, zero = 0;
  void use(RunConfig& c) const { c.ranks.tensor = tensor, c.ranks.zero = zero, c.train.accumulate = tensor; }
};

TEST(RunRecovery, OnRanksIsDecidedByOneAndDoneByAll) {
  for (const Two two : {Two{}, {.zero = 2}, {.tensor = 2}}) {
    SeveralRungs runs;
    two.use(runs.config);
    const std::string what = format("tensor {}, zero {}", two.tensor, two.zero);
    const std::string whole = runs.train_on(2).folder, cut = runs.copy_of(whole, "cut");
    const std::vector<RecoveryEvent> back = recoveries(whole, "roll_back", "done");
    ASSERT_FALSE(back.empty()) << what;
    EXPECT_EQ(recoveries(whole, "rate", "done").size(), 1u) << what;
    CheckpointStore(checkpoint_folder(cut)).forget_after(back[0].back_to);
    runs.train_on(2, cut);
    EXPECT_EQ(octet::testing::untimed_events(whole), octet::testing::untimed_events(cut)) << what;
  }
}

TEST(RunRecovery, ReturnsToTheCheckpointBeforeDamageThatOffDoesNotSurvive) {
  Damaged runs;
  runs.config.train.steps = 40;
  const std::string folder = runs.train().folder, off = runs.copy_of(folder, "off");
  runs.config.train.steps = 60, runs.config.recovery.roll_back.before = 0;
  const Outcome outcome = runs.damage(folder, poison);
  EXPECT_EQ(outcome.state, telemetry::RunState::finished);
  const std::vector<RecoveryEvent> back = recoveries(folder, "roll_back", "done");
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].back_to, 40);
  EXPECT_TRUE(back[0].rule == "nonfinite" && back[0].path == "embedding.weight") << back[0].path;
  std::vector<double> losses;
  for (const telemetry::StepEvent& e : telemetry::read_run(folder).steps)
    if (e.step > 45) losses.push_back(e.loss);
  EXPECT_LT(health::median_of(losses), 1);
  const auto state = io::SafetensorsFile::open(CheckpointStore(checkpoint_folder(folder)).path(60) + "/state.safetensors");
  std::int64_t sample = 0;
  std::memcpy(&sample, state.find("data.next_sample")->bytes.data(), sizeof sample);
  EXPECT_EQ(sample, (60 + back[0].step - 40) * 2) << "the data of the skipped steps is passed over";
  runs.config.recovery.mode = Mode::off;
  EXPECT_THROW(runs.damage(off, poison), DivergedError);
}

std::vector<telemetry::ScalesEvent> scales_of(const std::string& folder) { return telemetry::read_run(folder).scales; }

TEST(RunRecovery, TakesTheLayersOfAnAlertToBf16AndBack) {
  Clipped runs;
  const std::string whole = runs.train().folder;
  const std::vector<RecoveryEvent> done = recoveries(whole, "layers", "done"), ended = recoveries(whole, "layers", "ended");
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].step, done[0].step + runs.config.recovery.layers.steps);
  ASSERT_EQ(done[0].layers.size(), 1u);
  EXPECT_TRUE(has(done[0].text, done[0].layers[0] + ": x e4m3") && has(done[0].text, "-> bf16")) << done[0].text;
  EXPECT_TRUE(has(ended[0].text, done[0].layers[0] + ": bf16 -> x e4m3")) << ended[0].text;
  const telemetry::RunFacts facts = telemetry::read_run_facts(whole + "/run.json");
  for (const telemetry::ScalesEvent& e : scales_of(whole))
    for (std::size_t i = 0; i < facts.quantizers.size(); ++i) {
      const bool away = facts.quantizers[i].path == done[0].layers[0] && e.step > done[0].step && e.step <= ended[0].step;
      EXPECT_EQ(std::isnan(e.amax[i]), away) << e.step << " " << facts.quantizers[i].path;
      EXPECT_EQ(std::isnan(e.scale_max[i]), away);
    }
  for (const std::int64_t step : {done[0].step / 10 * 10 + 10, ended[0].step / 10 * 10 + 10}) {
    const std::string cut = runs.copy_of(whole, format("cut-{}", step));
    CheckpointStore(checkpoint_folder(cut)).forget_after(step);
    runs.train(cut);
    testing::expect_same_state(CheckpointStore(checkpoint_folder(whole)).path(40), CheckpointStore(checkpoint_folder(cut)).path(40));
    EXPECT_TRUE(octet::testing::untimed_events(whole) == octet::testing::untimed_events(cut)) << step;
  }
}

TEST(RunRecovery, ChangesLayersOnRanksAlikeAndRefusesWhereTheirCodesAreDivided) {
  Clipped runs;
  for (const Two two : {Two{}, {.tensor = 2}}) {
    two.use(runs.config);
    const std::string whole = runs.train_on(2).folder, cut = runs.copy_of(whole, format("cut-{}", two.tensor));
    const std::vector<RecoveryEvent> done = recoveries(whole, "layers", "done");
    ASSERT_EQ(done.size(), 1u) << two.tensor;
    EXPECT_EQ(recoveries(whole, "layers", "ended").size(), 1u) << two.tensor;
    CheckpointStore(checkpoint_folder(cut)).forget_after(done[0].step / 10 * 10 + 10);
    runs.train_on(2, cut);
    EXPECT_TRUE(octet::testing::untimed_events(whole) == octet::testing::untimed_events(cut)) << two.tensor;
  }
  Two{.zero = 1}.use(runs.config);
  ::testing::internal::CaptureStderr();
  const std::vector<RecoveryEvent> refused = recoveries(runs.train_on(2).folder, "layers", "refused");
  const std::string warned = ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(refused.empty());
  EXPECT_TRUE(has(refused[0].text, "travel as 8-bit codes")) << refused[0].text;
  EXPECT_TRUE(has(warned, "recovery.layers: layers cannot change their precision in this run: ranks.zero")) << warned;
}

TEST(RunRecovery, ChangesLayersOfDividedWeightsThatTravelAsValues) {
  Clipped runs("rowwise");
  runs.config.alerts.set_threshold("sqnr", 0.01), runs.config.alerts.set_threshold("saturated", 0);
  runs.config.train.accumulate = 1, runs.config.ranks.zero = 2;
  const Outcome outcome = runs.train_on(2);
  EXPECT_EQ(outcome.state, telemetry::RunState::finished);
  EXPECT_EQ(recoveries(outcome.folder, "layers", "done").size(), 1u);
  EXPECT_EQ(recoveries(outcome.folder, "layers", "ended").size(), 1u);
}

// A recipe whose codes are divided would divide these layers' weights otherwise.
TEST(RunRecovery, RefusesARecipeWhoseCodesWouldBeDivided) {
  Clipped runs("rowwise");
  runs.config.alerts.set_threshold("sqnr", 0.01), runs.config.alerts.set_threshold("saturated", 0);
  runs.config.train.accumulate = 1, runs.config.ranks.zero = 1, runs.config.recovery.layers.recipe = "current";
  ::testing::internal::CaptureStderr();
  const std::vector<RecoveryEvent> refused = recoveries(runs.train_on(2).folder, "layers", "refused");
  EXPECT_TRUE(has(::testing::internal::GetCapturedStderr(), "layers cannot change their precision in this run: ranks.zero"));
  ASSERT_FALSE(refused.empty());
  EXPECT_TRUE(has(refused[0].text, "ranks.zero") && has(refused[0].text, "recovery.layers.recipe = \"current\"")) << refused[0].text;
}

TEST(RunRecovery, ReturnsLayersIfARunIsResumedInAnotherMode) {
  Clipped runs;
  const std::string folder = runs.train().folder;
  const std::int64_t within = recoveries(folder, "layers", "done").at(0).step / 10 * 10 + 10;
  CheckpointStore(checkpoint_folder(folder)).forget_after(within);
  runs.config.recovery.mode = Mode::off;
  EXPECT_EQ(runs.train(folder).end.step, 40);
  EXPECT_FALSE(std::ranges::any_of(scales_of(folder).back().amax, [](float x) { return std::isnan(x); }));
}

// The layers of the checkpoint, which return between it and the incident.
TEST(RunRecovery, GoesBackToThePrecisionThatTheCheckpointHad) {
  SeveralRungs runs;
  runs.config.alerts.set_threshold("saturated", 1e-4);
  health::RecoveryConfig::Layers& layers = runs.config.recovery.layers;
  layers.most = 1, layers.within = 1000, layers.steps = 1000;
  const std::string away = runs.train().folder;
  const RecoveryEvent done = recoveries(away, "layers", "done").at(0), first = recoveries(away, "roll_back", "done").at(0);
  ASSERT_LT(done.step, first.back_to);
  EXPECT_EQ(first.layers, done.layers);
  layers.steps = (first.back_to + first.step) / 2 - done.step;
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  const RecoveryEvent ended = recoveries(whole, "layers", "ended").at(0), back = recoveries(whole, "roll_back", "done").at(0);
  EXPECT_TRUE(back.back_to < ended.step && ended.step < back.step) << back.back_to << " " << ended.step << " " << back.step;
  EXPECT_EQ(back.layers, done.layers);
  CheckpointStore(checkpoint_folder(cut)).forget_after(back.back_to);
  runs.train(cut);
  EXPECT_TRUE(octet::testing::untimed_events(whole) == octet::testing::untimed_events(cut));
}

TEST(StateCopy, GivesAnotherEngineTheBitsOfTheFirst) {
  for (const char* recipe : {"delayed", "global", "fp16", "mxfp8"}) {
    const EngineConfig config = testing::small_engine("llama", recipe);
    Engine first(config, Device::cpu, machine::machine_target(Device::cpu)),
        second(config, Device::cpu, machine::machine_target(Device::cpu));
    StepRunner one = testing::train_steps(first, 3);
    StateCopy::of(first.stream, [&](StateVisitor& v) { first.visit_values(v); }).restore(second.stream, [&](StateVisitor& v) {
      second.visit_values(v);
    });
    EXPECT_EQ(second.precision.set_quantizer_states(second.stream, first.precision.quantizer_states(first.stream)), 0);
    StepRunner two(second);
    for (StepRunner* runner : {&one, &two}) runner->run(std::vector{testing::random_batch(4, 32, 61, 50)}, {.learning_rate = 1e-2});
    EXPECT_TRUE(octet::testing::SavedState::of(first) == octet::testing::SavedState::of(second)) << recipe;
  }
}

TEST(RunRecovery, StopsWithTheIncidentsPlaceWhenNoRungIsLeft) {
  Damaged runs;
  runs.config.train.steps = 40;
  const std::string folder = runs.train().folder;
  runs.config.train.steps = 80, runs.config.recovery.roll_back.most = 0;
  const std::string error = error_of<DivergedError>([&] { runs.damage(folder, poison); });
  EXPECT_TRUE(has(error, "recovery stopped it after step 4") && has(error, "nonfinite in embedding.weight")) << error;
  EXPECT_TRUE(has(error, "octet watch " + folder) && has(error, "&view=Incidents&step=") && has(error, "octet report " + folder)) << error;
  const telemetry::RunRecord run = telemetry::read_run(folder);
  EXPECT_EQ(run.facts.state, telemetry::RunState::diverged);
  EXPECT_EQ(run.end.value().reason, "stopped by recovery");
  EXPECT_EQ(run.recoveries.back().rung, "stop");
  EXPECT_EQ(CheckpointStore(checkpoint_folder(folder)).steps().back(), 40) << "the last state is not saved";
}

TEST(RunRecovery, NeedsAlertsAndARecipeThatFits) {
  Damaged runs;
  runs.config.alerts.enabled = false;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "recovery.mode needs alerts"));
  runs.config.alerts.enabled = true, runs.config.recovery.layers.recipe = "bf61";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "recovery.layers.recipe: "));
  runs.config.recovery.layers.recipe = "fp16";
  EXPECT_TRUE(has(error_of<ConfigError>([&] { runs.train(); }), "activations are f16 under it and bf16 under"));
}

}  // namespace
}  // namespace octet::train
