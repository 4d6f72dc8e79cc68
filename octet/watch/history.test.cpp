#include <gtest/gtest.h>

#include <fstream>

#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "octet/watch/answers.hpp"
#include "octet/watch/screen.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::watch {
namespace {

using telemetry::event_line, telemetry::StepEvent;

TEST(Curves, KeepExtremesAndMeansWithinTheirBound) {
  Curve curve(64);
  double sum = 0;
  for (std::int64_t step = 1; step <= 10000; ++step) {
    const double x = step == 4321 ? 900 : step == 7777 ? -5 : 1 + double(step % 7);
    curve.add(CurvePoint::of(step, x)), sum += x;
  }
  EXPECT_LE(curve.all().size(), 64u);
  EXPECT_EQ(curve.stride(), 256);
  Range all;
  double total = 0;
  std::int64_t count = 0;
  for (const CurvePoint& p : curve.all()) all.absorb(p.range), total += p.sum, count += p.count;
  EXPECT_EQ(all.low, -5);
  EXPECT_EQ(all.high, 900);
  EXPECT_DOUBLE_EQ(total, sum);
  EXPECT_EQ(count, 10000);
  for (const CurvePoint& p : curve.all()) EXPECT_EQ(p.range.high == 900, p.first <= 4321 && 4321 <= p.last);
  EXPECT_LE(curve.merged(0, 10000, 10).size(), 10u);
  EXPECT_EQ(curve.merged(0, 10000, 10).back().last, 10000);
}

TEST(Curves, CountValuesThatAreNotFiniteApart) {
  Curve curve(4);
  for (std::int64_t step = 1; step <= 8; ++step) curve.add(CurvePoint::of(step, step == 3 ? NAN : 2));
  std::int64_t bad = 0;
  for (const CurvePoint& p : curve.all()) {
    bad += p.nonfinite;
    EXPECT_EQ(p.mean(), 2);
  }
  EXPECT_EQ(bad, 1);
}

TEST(Curves, ReplaceStepsThatAResumedRunRepeats) {
  Curve curve(64);
  for (std::int64_t step = 1; step <= 10; ++step) curve.add(CurvePoint::of(step, 1));
  for (std::int64_t step = 6; step <= 8; ++step) curve.add(CurvePoint::of(step, 2));
  ASSERT_EQ(curve.all().size(), 8u);
  EXPECT_EQ(curve.all()[4].mean(), 1);
  EXPECT_EQ(curve.all()[5].mean(), 2);
}

TEST(Conditions, AreToldApartBySigns) {
  using telemetry::RunState;
  const auto of = [](RunState told, LockState lock, double idle) { return condition_of({told, lock, idle, 2}); };
  EXPECT_EQ(of(RunState::running, LockState::held, 3), Condition::running);
  EXPECT_EQ(of(RunState::running, LockState::held, 100), Condition::stalled);
  EXPECT_EQ(condition_of({RunState::running, LockState::held, 100, 30}), Condition::running);  // its steps are slow
  EXPECT_EQ(of(RunState::running, LockState::free, 3), Condition::crashed);
  EXPECT_EQ(of(RunState::running, LockState::unknown, 3), Condition::running);
  EXPECT_EQ(of(RunState::running, LockState::missing, 100), Condition::silent);
  EXPECT_EQ(of(RunState::finished, LockState::free, 100), Condition::finished);
  EXPECT_EQ(of(RunState::finished, LockState::held, 1), Condition::running);  // resumed
  EXPECT_EQ(of(RunState::diverged, LockState::free, 1), Condition::diverged);
}

class Watched : public ::testing::Test {
 protected:
  testing::Scratch scratch;
  std::string folder = scratch.at("runs/a");
  telemetry::RunRecord record = testing::sample_run(testing::sample_recipes()[1], 1, {.layers = 4, .steps = 120});

  void SetUp() override {
    std::filesystem::create_directories(folder);
    testing::write_sample(folder, record);
  }
  void replace_by(const telemetry::RunRecord& other) {
    std::filesystem::remove(folder + "/metrics.jsonl");
    testing::write_sample(folder, other);
  }
  void append(const std::string& line) { std::ofstream(folder + "/metrics.jsonl", std::ios::app) << line << "\n"; }
};

TEST_F(Watched, HasTheNumbersOfTheFile) {
  Runs runs({scratch.at("runs")});
  ASSERT_EQ(runs.size(), 1u);
  WatchedRun& run = runs.loaded(0);
  EXPECT_TRUE(run.complete());
  EXPECT_EQ(run.problem(), "");
  EXPECT_EQ(run.name(), "a");
  EXPECT_EQ(run.condition(), Condition::finished);
  const auto& loss = run.history().curves().find("loss")->second.all();
  ASSERT_EQ(loss.size(), record.steps.size());
  for (std::size_t i = 0; i < loss.size(); ++i) EXPECT_NEAR(loss[i].mean(), record.steps[i].loss, 1e-12);
  const TensorRow& row = run.history().health().rows().all().back();
  EXPECT_EQ(row.last, record.health.back().step);
  EXPECT_EQ(run.history().health().cell(row, health_sqnr, 2).low, record.health.back().sqnr_db[2]);
}

TEST_F(Watched, TellsNewEventsAndPassesOverUnknownAndDamagedLines) {
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  const std::uint64_t before = run.news().next();
  append("{\"event\":\"repair\",\"step\":121,\"of\":\"a later version\"}");
  EXPECT_FALSE(runs.read(1 << 20));
  EXPECT_EQ(run.problem(), "");
  append("{\"event\":\"step\"");
  append(event_line(StepEvent{.step = 121, .loss = 1.25}));
  runs.read(1 << 20);
  EXPECT_EQ(run.news().next(), before + 2) << "what it adds to curves, and itself";
  for (const std::uint64_t item : {before, before + 1})
    EXPECT_NE(run.news().at(item).text.find("\"loss\":1.25"), std::string::npos) << run.news().at(item).text;
  EXPECT_EQ(run.history().last_step()->loss, 1.25);
  EXPECT_NE(run.problem().find("metrics.jsonl: byte "), std::string::npos) << run.problem();
}

TEST_F(Watched, ShowsAlertsAmongIncidents) {
  append(event_line(
      telemetry::AlertEvent{.step = 9, .rule = "loss_spike", .severity = telemetry::Severity::critical, .text = "seen", .remedy = "do"}));
  Runs runs({folder});
  const json::Value all = incidents_answer(runs.loaded(0), {});
  const json::Value& last = all.find("incidents")->array()->front();
  EXPECT_EQ(*last.find("kind")->text(), "critical loss_spike");
  EXPECT_EQ(*last.find("text")->text() + *last.find("remedy")->text(), "seendo");
  const json::Value one =
      incidents_answer(runs.loaded(0), *parse_target("/x?incident=" + std::to_string(*last.find("incident")->integer())));
  EXPECT_EQ(*one.find("nearby")->array()->back().find("kind")->text(), "critical loss_spike");
}

TEST_F(Watched, HasTheLoadsOfExperts) {
  append(event_line(telemetry::ExpertsEvent{.step = 8, .experts = 4, .layers = {1, 3}, .counts = {5, 5, 5, 5, 16, 0, 2, 2}}));
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  EXPECT_EQ(run.problem(), "");
  EXPECT_EQ(run.history().curves().find("expert_load")->second.all().back().range.high, 3.2f) << "16 of a mean of 5";
  const double entropy = run.history().curves().find("expert_entropy")->second.all().back().range.low;
  EXPECT_NEAR(entropy, -(0.8 * std::log(0.8) + 0.2 * std::log(0.1)) / std::log(4.0), 1e-6);
  const json::Value experts = *summary_answer(run).find("experts");
  EXPECT_EQ(*experts.find("experts")->integer(), 4);
  EXPECT_EQ(*(*experts.find("counts")->array())[4].integer(), 16);
}

TEST_F(Watched, HasSamplesSharedScalesAndTheMachine) {
  record.facts.ranks.shared_scales = {"a", "b"};
  telemetry::write_run_facts(folder + "/run.json", record.facts);
  append(event_line(telemetry::SharedScalesEvent{.step = 8, .mu = {1, 0.5f}, .overflow = {0.25f, 0}, .underflow = {0, 0}}));
  append(event_line(telemetry::MachineEvent{.step = 8, .memory_free = 8e9, .epoch = 0.5}));
  for (int i = 1; i <= 102; ++i)
    append(
        event_line(telemetry::SampleEvent{.step = i, .prompt = "<b>", .text = std::string(i == 102 ? 100000 : 1, 'x'), .end = "length"}));
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  EXPECT_EQ(run.problem(), "");
  EXPECT_EQ(run.history().curves().find("mu")->second.all().back().range.low, 0.5f);
  EXPECT_EQ(run.history().curves().find("overflow")->second.all().back().range.high, 0.25f);
  const json::Value summary = summary_answer(run);
  EXPECT_EQ(*(*summary.find("shared_scales")->find("tensors")->array())[1].find("mu")->real(), 0.5);
  EXPECT_EQ(*summary.find("surroundings")->find("epoch")->real(), 0.5);
  EXPECT_TRUE(summary.find("surroundings")->find("disk_free")->is_null());
  const json::Value answer = samples_answer(run);
  const json::Array& samples = *answer.find("samples")->array();
  ASSERT_EQ(samples.size(), 100u) << "the last ones";
  EXPECT_EQ(*samples[0].find("step")->integer(), 102);
  EXPECT_LT(samples[0].find("text")->text()->size(), 33000u);
  EXPECT_EQ(*samples[1].find("prompt")->text(), "<b>");
}

TEST_F(Watched, HasTheGpusWithTheirReasonsAndTheSqnrOfFormats) {
  append(event_line(telemetry::GpusEvent{.step = 8,
                                         .utilization = {1, 0.5f},
                                         .power = {600, NAN},
                                         .temperature = {71, 88},
                                         .sm_clock = {1980, 1500},
                                         .memory_used = {5e10f, 6e10f},
                                         .throttling = {4, 36}}));
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  EXPECT_EQ(run.problem(), "");
  const auto last = [&](const char* curve) { return double(run.history().curves().find(curve)->second.all().back().range.high); };
  EXPECT_TRUE(last("gpu_utilization") == 0.75 && last("gpu_power") == 600 && last("gpu_temperature") == 88 && last("gpu_clock") == 1500);
  EXPECT_EQ(last("gpus_throttled"), 1);
  const json::Value summary = summary_answer(run);
  EXPECT_EQ(*(*summary.find("gpus")->find("reasons")->array())[1].text(), "power cap, heat");
  EXPECT_TRUE((*summary.find("gpus")->find("power")->array())[1].is_null() ||
              std::isnan(*(*summary.find("gpus")->find("power")->array())[1].real()));
  std::size_t e5m2 = 0;
  for (const json::Value& t : *summary.find("tensors")->array()) {
    const bool five = *t.find("format")->text() == "e5m2";
    e5m2 += five;
    EXPECT_NEAR(*t.find("rounding_sqnr")->real(), five ? 26.2 : 32.2, 0.05);
  }
  EXPECT_GT(e5m2, 0u);
  EXPECT_NE(screen_text(run, {}).find("GPU 75% busy"), std::string::npos) << screen_text(run, {});
}

TEST_F(Watched, BeginsAgainAfterAResumeCutTheFile) {
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  const std::uint64_t before = run.news().next();
  std::ofstream(folder + "/metrics.jsonl") << event_line(StepEvent{.step = 1, .loss = 9}) << "\n";
  while (runs.read(1 << 20)) continue;
  EXPECT_EQ(run.history().last_step()->loss, 9);
  EXPECT_EQ(run.history().curves().find("loss")->second.all().size(), 1u);
  EXPECT_EQ(run.news().at(before).name, "reload");
}

TEST_F(Watched, ARunReplacedByOneWithOtherQuantizersIsReadAgain) {
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  const RunHistory& held = run.history();
  const std::optional<StepEvent>& last = held.last_step();
  ASSERT_TRUE(last);
  const telemetry::RunRecord other = testing::sample_run(testing::sample_recipes()[1], 1, {.layers = 3, .steps = 30});
  ASSERT_NE(other.facts.quantizers.size(), record.facts.quantizers.size());
  replace_by(other);
  run.refresh();
  EXPECT_FALSE(last) << "the history is empty until it is read again";
  EXPECT_EQ(&held, &run.history());
  screen_text(run, {});
  series_answer(run, {}), heat_answer(run, {}), tensor_answer(run, {}), samples_answer(run), incidents_answer(run, {});
  EXPECT_EQ(*summary_answer(runs.fresh(0)).find("last")->find("step")->integer(), 30);
  replace_by(record);
  EXPECT_EQ(*(*compare_answer(runs, *parse_target("/x?runs=0")).find("runs")->array())[0].find("step")->integer(), 120);
  replace_by(other);
  EXPECT_EQ(*summary_answer(runs.fresh(0)).find("last")->find("step")->integer(), 30);
  EXPECT_EQ(held.health().tensors(), other.facts.quantizers.size());
  EXPECT_EQ(run.problem(), "");
}

TEST_F(Watched, ListsRunsThatAppearLaterAndOnesWithDamagedFiles) {
  Runs runs({scratch.at("runs")});
  std::filesystem::create_directories(scratch.at("runs/b"));
  scratch.write("runs/b/run.json", "{");
  runs.discover();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_NE(runs.at(1).problem(), "");
  EXPECT_THROW(runs.loaded(1), DataError);
  EXPECT_THROW(Runs({scratch.at("none")}), ConfigError);
}

TEST_F(Watched, ComparesRunsByLossConfigurationAndPlan) {
  std::filesystem::create_directories(scratch.at("runs/b"));
  telemetry::RunRecord other = record;
  for (auto& e : other.steps) e.loss *= 1.01;
  other.facts.plan[1].precision = "bf16 by a rule", other.facts.config_json = "{\"train\":{\"steps\":7}}";
  testing::write_sample(scratch.at("runs/b"), other);
  Runs runs({scratch.at("runs")});
  const json::Value both = compare_answer(runs, *parse_target("/api/compare?runs=0,1"));
  const json::Value& difference = *(*both.find("runs")->array())[1].find("difference");
  EXPECT_NEAR(*difference.find("mean")->real(), 0.01, 1e-9);
  EXPECT_EQ(both.find("plan")->array()->size(), 1u);
  EXPECT_NE(both.find("config")->dump().find("{\"key\":\"train.steps\",\"values\":[\"120\",\"7\"]}"), std::string::npos);
  EXPECT_THROW(compare_answer(runs, *parse_target("/api/compare?runs=0,2")), ConfigError);
  EXPECT_THROW(compare_answer(runs, *parse_target("/api/compare")), ConfigError);
}

TEST_F(Watched, ARunThatWentBackShowsItsLaterStepsAndEachIncidentThoseOfItsPass) {
  append(event_line(telemetry::IncidentEvent{.step = 120, .kind = "first", .text = "seen"}));
  append(event_line(
      telemetry::RecoveryEvent{.step = 120, .rung = "roll_back", .result = "done", .rule = "divergence", .back_to = 100, .text = "back"}));
  for (std::int64_t step = 101; step <= 110; ++step) append(event_line(StepEvent{.step = step, .loss = 77}));
  append(event_line(telemetry::IncidentEvent{.step = 110, .kind = "second", .text = "seen"}));
  Runs runs({folder});
  WatchedRun& run = runs.loaded(0);
  EXPECT_EQ(run.history().last_step()->step, 110);
  EXPECT_EQ(run.history().curves().find("loss")->second.all().back().last, 110);
  const auto losses_of = [&](std::int64_t from_last) {
    const std::int64_t i = run.history().incidents_seen() - 1 - from_last;
    std::vector<double> out;
    const json::Value one = incidents_answer(run, *parse_target(format("/x?incident={}", i)));
    for (const json::Value& s : *one.find("steps")->array()) out.push_back(*s.find("loss")->real());
    return out;
  };
  const std::vector<double> second = losses_of(0), back = losses_of(1), first = losses_of(2);
  EXPECT_EQ(std::ranges::count(second, 77), 10);
  EXPECT_EQ(second.size(), 21u);
  EXPECT_EQ(std::ranges::count(first, 77), 0);
  EXPECT_TRUE(first.size() == 21u && back == first);
  EXPECT_NE(incidents_answer(run, {}).dump().find("recovery: roll_back done"), std::string::npos);
}

TEST_F(Watched, AnIncidentHasTheStepsAroundItAndTheTensorThatMovedFirst) {
  std::filesystem::create_directories(scratch.at("runs/b"));
  telemetry::RunRecord burst = record;
  burst.scales[79].amax[5] *= 1e6f;
  std::ofstream out(scratch.at("runs/b/metrics.jsonl"));
  telemetry::write_run_facts(scratch.at("runs/b/run.json"), burst.facts);
  for (std::size_t i = 0; i < burst.steps.size(); ++i) {
    out << event_line(burst.steps[i]) << "\n" << event_line(burst.scales[i]) << "\n";
    if (i == 80) out << event_line(telemetry::IncidentEvent{.step = 81, .kind = "skipped", .text = "<b>not bold</b>"}) << "\n";
  }
  out.close();
  Runs runs({scratch.at("runs/b")});
  const json::Value one = incidents_answer(runs.loaded(0), *parse_target("/x?incident=0"));
  EXPECT_EQ(one.find("steps")->array()->size(), 41u);
  ASSERT_EQ(one.find("movers")->array()->size(), 1u);
  const json::Value& mover = one.find("movers")->array()->front();
  EXPECT_EQ(*mover.find("tensor")->integer(), 5);
  EXPECT_EQ(*mover.find("step")->integer(), 80);
  EXPECT_NEAR(*mover.find("bits")->real(), std::log2(1e6), 1.0);
}

}  // namespace
}  // namespace octet::watch
