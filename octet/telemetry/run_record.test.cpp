#include "octet/telemetry/run_record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "tests/testing/scratch.hpp"
#include "tests/testing/small_files.hpp"

namespace octet::telemetry {
namespace {

struct Folder : testing::Scratch {
  std::string metrics() const { return at("metrics.jsonl"); }
};

RunFacts small_facts() {
  RunFacts run = testing::sample_facts(testing::sample_recipes()[1], 3, {.layers = 3});
  run.quantizers.resize(2);
  return run;
}

void append(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::app | std::ios::binary) << text; }

void put(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

// What read_run() says of a run's metrics, from their file's name on; "" where it reads them.
std::string refusal(const std::string& folder, const ReadLimits& limits = {}) {
  const std::string what = testing::error_of<DataError>([&] { read_run(folder, limits); });
  return what.substr(std::min(what.find("metrics.jsonl"), what.size()));
}

TEST(RunFolder, AlertsTheMachineAndSamplesComeBackAsWritten) {
  const MachineEvent machine{.step = 3, .time = 1.5, .memory_free = 8e9, .checkpoint_age = 12.5, .epoch = 0.25};
  for (const Severity severity : {Severity::info, Severity::warning, Severity::critical}) {
    const AlertEvent alert{.step = 7,
                           .time = 2.5,
                           .rule = "sqnr",
                           .severity = severity,
                           .path = "layers.0.x",
                           .value = NAN,
                           .threshold = 10,
                           .window = 2,
                           .text = "a \"b\"\n",
                           .remedy = "c"};
    const SampleEvent sample{.step = 9, .time = 3, .prompt = "\"a\"", .text = "b\n\xff", .tokens = 2, .end = "length"};
    for (const Event& event : {Event(machine), Event(alert), Event(sample)})
      EXPECT_EQ(event_line(parse_event(event_line(event), "line")), event_line(event));
    const auto read = std::get<AlertEvent>(parse_event(event_line(alert), "line"));
    EXPECT_EQ(read.severity, severity);
    EXPECT_EQ(read.rule + read.path + read.text + read.remedy, alert.rule + alert.path + alert.text + alert.remedy);
    EXPECT_TRUE(std::isnan(read.value) && read.threshold == 10 && read.window == 2);
  }
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  append(folder.metrics(), event_line(machine) + "\n");
  append(folder.metrics(), event_line(SampleEvent{.step = 3, .text = "one"}) + "\n");
  for (int i = 0; i < 5; ++i) append(folder.metrics(), event_line(AlertEvent{.step = i, .rule = "sqnr"}) + "\n");
  const RunRecord run = read_run(folder.folder(), {.incidents = 3});
  EXPECT_EQ(run.machine.at(0).memory_free, 8e9);
  EXPECT_TRUE(std::isnan(run.machine.at(0).disk_free));
  EXPECT_EQ(run.samples.at(0).text, "one");
  EXPECT_EQ(run.alerts.size(), 3u);
  EXPECT_EQ(run.alerts_left_out, 2);
}

TEST(RunFolder, ARunThatWentBackHasItsLaterStepsAndEveryRecovery) {
  const RecoveryEvent back{.step = 3,
                           .time = 1.5,
                           .rung = "roll_back",
                           .result = "done",
                           .rule = "divergence",
                           .path = "layers.0.x",
                           .alert_step = 2,
                           .back_to = 1,
                           .text = "a \"b\""};
  const RecoveryEvent skip{.step = 2, .rung = "skip", .result = "done", .rule = "loss_spike"};
  for (const Event& event :
       {Event(back), Event(skip), Event(StepEvent{.step = 1, .skipped = true, .limited = true, .one_token = 0.75, .mtp_loss = 2.5})})
    EXPECT_EQ(event_line(parse_event(event_line(event), "line")), event_line(event));
  EXPECT_TRUE(repeats_steps(std::get<RecoveryEvent>(parse_event(event_line(back), "line"))) && !repeats_steps(skip));
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  for (const int step : {1, 2, 3}) append(folder.metrics(), event_line(StepEvent{.step = step, .loss = 9}) + "\n");
  append(folder.metrics(), event_line(back) + "\n" + event_line(StepEvent{.step = 2, .loss = 4}) + "\n");
  const RunRecord run = read_run(folder.folder());
  ASSERT_EQ(run.steps.size(), 2u);
  EXPECT_TRUE(run.steps[0].loss == 9 && run.steps[1].step == 2 && run.steps[1].loss == 4);
  EXPECT_EQ(run.recoveries.size(), 1u);
}

TEST(RunFolder, TheFactsOfARunComeBackAsWritten) {
  const Folder folder;
  RunFacts run = small_facts();
  run.name = "a <b> & \"c\"\n\x1b[31m";
  run.ranks = {.wanted = 2, .started = 2, .here = 1, .backend = "mpi", .gradients = "bf16", .sent = {{"all_reduce", 3, 1000}}};
  run.ranks.shared_scales = {"layers.0.up", "lm_head"};
  run.ranks.planned = {.gemm_flops = 8, .fp8_flops = 4, .collectives = 3, .sent_bytes = 1000};
  run.ranks.ran = {.gemm_flops = 8, .fp8_flops = 3, .collectives = 3, .sent_bytes = 999};
  write_run_facts(folder.folder() + "/run.json", run);
  const std::string first = read_file(folder.folder() + "/run.json", 1 << 20);
  const RunFacts read = read_run_facts(folder.folder() + "/run.json");
  EXPECT_EQ(read.name, run.name);
  EXPECT_EQ(read.plan.size(), run.plan.size());
  EXPECT_EQ(read.plan[1].shape, run.plan[1].shape);
  EXPECT_EQ(read.memory.peak, run.memory.peak);
  EXPECT_EQ(read.ranks.planned, run.ranks.planned);
  EXPECT_EQ(read.ranks.ran, run.ranks.ran);
  EXPECT_EQ(read.ranks.sent.at(0).bytes, 1000);
  EXPECT_EQ(read.ranks.shared_scales, run.ranks.shared_scales);
  EXPECT_EQ(read.state, RunState::finished);
  write_run_facts(folder.folder() + "/run.json", read);
  EXPECT_EQ(read_file(folder.folder() + "/run.json", 1 << 20), first);
}

TEST(RunFolder, AnEventOfRanksHasAnEntryPerRank) {
  const auto refused = [](const char* ranks) {
    return testing::error_of<DataError>([&] { parse_event(format("{\"event\":\"ranks\",\"step\":1,\"time\":0,{}}", ranks), "line"); });
  };
  EXPECT_TRUE(
      testing::has(refused(R"("seconds":[],"waited":[],"slowest":0,"sent_bytes":0)"), "seconds must be a list with an entry per rank"));
  EXPECT_TRUE(testing::has(refused(R"("seconds":[1,2],"waited":[1],"slowest":0,"sent_bytes":0)"), "waited must be a list of 2 entries"));
  EXPECT_TRUE(testing::has(refused(R"("seconds":[1,2],"waited":[1,1],"slowest":2,"sent_bytes":0)"), "slowest must be"));
}

TEST(RunFolder, AnEventOfGpusHasAnEntryPerRankInEachList) {
  GpusEvent gpus{
      .utilization = {1, 1}, .power = {1, 1}, .temperature = {1, 1}, .sm_clock = {1}, .memory_used = {1, 1}, .throttling = {0, 0}};
  const auto refused = [&] { return testing::error_of<DataError>([&] { parse_event(event_line(gpus), "line"); }); };
  EXPECT_TRUE(testing::has(refused(), "sm_clock must be a list of 2 entries, one per rank"));
  gpus.sm_clock = {1, 1}, gpus.throttling = {0, -1};
  EXPECT_TRUE(testing::has(refused(), "throttling must be"));
  gpus = {};
  EXPECT_TRUE(testing::has(refused(), "utilization must be a list with an entry per rank"));
}

TEST(RunFolder, LinesOfEarlierVersionsKeepTheirBytes) {
  for (const char* line :
       {R"({"event":"step","step":7,"time":1.5,"loss":2.25,"loss_z":null,"grad_norm":0.75,"grad_norm_z":-0.5,"lr":0.125,)"
        R"("tokens":14336,"seconds":0.25,"tokens_per_second":8192.5,"limit_share":0.61,"param_norm":101.5,"data_wait":0.0)"
        R"(01,"memory":123456789,"skipped":true,"loss_scale":65536.5,"limited":true,"one_token":0.75})",
        R"({"event":"health","step":7,"time":1.5,"headroom_bits":[0.5,null],"saturated":[0.5,0.25],"flushed":[0.5,0.25],")"
        R"(sqnr_db":[31.5,27.5],"nonfinite":[0,3]})",
        R"({"event":"health","step":7,"time":1.5,"headroom_bits":[0.5],"saturated":[0.5],"flushed":[0.5],"sqnr_db":[31.5])"
        R"(,"nonfinite":[0],"scale_deviation":[1.5],"lossy_blocks":[null]})",
        R"({"event":"eval","step":7,"time":1.5,"loss":2.5,"tokens":65536,"average_loss":null})",
        R"({"event":"experts","step":7,"time":1.5,"experts":2,"layers":[1,3],"counts":[1,2,3,4],"bias":[0.5,0.25,0.5,0.25)"
        R"(]})",
        R"({"event":"recovery","step":3,"time":1.5,"rung":"roll_back","result":"done","rule":"divergence","path":"a","ale)"
        R"(rt_step":2,"text":"b","back_to":1,"layers":["c"]})",
        R"({"event":"end","step":7,"time":1.5,"reason":"done","train_loss":2.25,"eval_loss":2.5,"average_loss":null,"toke)"
        R"(ns_per_second":8192.5,"skipped":1})"})
    EXPECT_EQ(event_line(parse_event(line, "line")), line);
  const std::string eval = R"({"event":"eval","step":7,"time":1.5,"loss":2.5,"tokens":65536})";
  EXPECT_TRUE(std::isnan(std::get<EvalEvent>(parse_event(eval, "line")).average_loss)) << "of versions without averages";
}

TEST(RunFolder, EveryEventComesBackAsWritten) {
  const Folder folder;
  RunFacts facts = small_facts();
  facts.ranks.shared_scales = {"a", "b"};
  write_run_facts(folder.folder() + "/run.json", facts);
  const StepEvent step{7, 1.5, 2.25, 0.5, 0.75, -0.5, 3e-4, 14336, 0.25, 8192, 0.61, 101.5, 0.001, 123456789, true};
  const ScalesEvent scales{7, 1.5, {0.1f, 2}, {4480, 224}, {4480, 448}};
  const HealthEvent health{7, 1.5, {0.5f, -0.25f}, {0, 1e-6f}, {0.125f, 0}, {31.5f, 27}, {0, 3}};
  const RanksEvent ranks{7, 1.5, {0.25f, 0.5f}, {0.125f, NAN}, 1, 4096};
  const SharedScalesEvent shared{7, 1.5, {0.5f, 1}, {1e-5f, 0}, {0.25f, NAN}};
  const GpusEvent gpus{7, 1.5, {0.5f, 1}, {612.5f, NAN}, {71, 66}, {1755, 1980}, {5e10f, 6e10f}, {4, 0}};
  const EvalEvent eval{7, 1.5, 2.5, 65536};
  const IncidentEvent incident{7, 1.5, "skipped", "layers.0", "text with \"quotes\" and \n"};
  const EndEvent end{7, 1.5, "done", 2.25, 2.5, 8192, 1};
  {
    MetricsWriter writer(folder.metrics());
    for (const Event& e :
         {Event(step), Event(scales), Event(health), Event(ranks), Event(shared), Event(gpus), Event(eval), Event(incident), Event(end)})
      writer.emit(e);
  }
  const RunRecord run = read_run(folder.folder());
  EXPECT_EQ(event_line(run.steps.at(0)), event_line(step));
  EXPECT_EQ(event_line(run.scales.at(0)), event_line(scales));
  EXPECT_EQ(event_line(run.health.at(0)), event_line(health));
  EXPECT_EQ(event_line(run.ranks.at(0)), event_line(ranks));
  EXPECT_EQ(event_line(run.shared_scales.at(0)), event_line(shared));
  EXPECT_EQ(event_line(run.gpus.at(0)), event_line(gpus));
  EXPECT_EQ(event_line(run.evals.at(0)), event_line(eval));
  EXPECT_EQ(event_line(run.incidents.at(0)), event_line(incident));
  EXPECT_EQ(event_line(run.end.value()), event_line(end));
  EXPECT_TRUE(run.steps[0].skipped);
  EXPECT_EQ(run.steps[0].learning_rate, 3e-4);
  EXPECT_EQ(run.scales[0].amax[0], 0.1f);
  EXPECT_FALSE(run.torn);
}

TEST(RunFolder, NumbersThatAreNotFiniteComeBackAsNan) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  MetricsWriter(folder.metrics()).emit(StepEvent{.step = 1, .loss = NAN, .grad_norm = INFINITY});
  const RunRecord run = read_run(folder.folder());
  EXPECT_TRUE(std::isnan(run.steps.at(0).loss));
  EXPECT_TRUE(std::isnan(run.steps.at(0).grad_norm));
}

TEST(RunFolder, ARunThatHasNotBegunReadsAsEmpty) {
  const Folder folder;
  RunFacts facts = small_facts();
  facts.state = RunState::running;
  write_run_facts(folder.folder() + "/run.json", facts);
  EXPECT_TRUE(read_run(folder.folder()).steps.empty());
  facts.state = RunState::finished;
  write_run_facts(folder.folder() + "/run.json", facts);
  EXPECT_TRUE(octet::testing::has(octet::testing::error_of<DataError>([&] { read_run(folder.folder()); }),
                                  "metrics.jsonl: the file is missing, though the run is finished; restore"));
}

TEST(RunFolder, ATornLastLineCostsNothingButItselfWhereverItTears) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  const std::string line = event_line(StepEvent{.step = 2, .loss = 2});
  for (std::size_t cut = 0; cut <= line.size(); cut += 5) {
    put(folder.metrics(), event_line(StepEvent{.step = 1, .loss = 1}) + "\n" + line.substr(0, cut));
    const RunRecord run = read_run(folder.folder());
    ASSERT_EQ(run.steps.size(), 1u);
    ASSERT_EQ(run.torn, cut > 0);  // with no byte of it there is nothing torn
    if (cut % 40) continue;
    MetricsWriter(folder.metrics()).emit(StepEvent{.step = 3, .loss = 3});
    const RunRecord after = read_run(folder.folder());
    ASSERT_EQ(after.steps.size(), 2u);
    ASSERT_EQ(after.steps[1].step, 3);
    ASSERT_FALSE(after.torn);
  }
}

TEST(RunFolder, ATornLineLongerThanTheWritersLookBackIsCutWhole) {
  const Folder folder;
  put(folder.metrics(), "{}\n" + std::string(10000, 'x'));
  const MetricsWriter writer(folder.metrics());
  EXPECT_EQ(read_file(folder.metrics(), 100), "{}\n");
}

TEST(RunFolder, LinesThatFindNoRoomWaitForItAndTheLastOneDoesNot) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  MetricsWriter writer(folder.metrics());
  writer.emit(StepEvent{.step = 1});
  {
    const testing::SmallFiles small(std::filesystem::file_size(folder.metrics()) + 20);
    for (const std::int64_t step : {2, 3}) EXPECT_NO_THROW(writer.emit(StepEvent{.step = step}));
    EXPECT_THROW(writer.emit(EndEvent{.step = 3}), IoError);
  }
  EXPECT_EQ(read_run(folder.folder()).steps.size(), 1u);
  EXPECT_FALSE(read_run(folder.folder()).torn);
  writer.emit(StepEvent{.step = 4});
  const RunRecord after = read_run(folder.folder());
  ASSERT_EQ(after.steps.size(), 4u);
  EXPECT_TRUE(after.end);
}

TEST(RunFolder, TwoWritersOfOneRunAreRefused) {
  const Folder folder;
  const MetricsWriter first(folder.metrics());
  EXPECT_THROW(MetricsWriter second(folder.metrics()), IoError);
}

TEST(RunFolder, AnUnwritableFolderIsAnErrorThatNamesIt) {
  const std::string message = testing::error_of<IoError>([] { MetricsWriter("/nonexistent/folder/metrics.jsonl"); });
  EXPECT_TRUE(testing::has(message, "/nonexistent/folder")) << message;
}

TEST(RunFolder, HostileLinesAreRefusedWithFileLineAndField) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  const std::string good = event_line(StepEvent{.step = 1}) + "\n";
  const auto error = [&](const std::string& line) {
    put(folder.metrics(), good + line + "\n" + good);
    const std::string message = refusal(folder.folder()), remedy = "; restore the file from a copy, or leave this run out";
    EXPECT_TRUE(message.ends_with(remedy)) << message;
    return message.substr(0, message.size() - std::min(message.size(), remedy.size()));
  };
  EXPECT_TRUE(error("{").starts_with("metrics.jsonl:2: column 2: not valid JSON: "));
  EXPECT_EQ(error("[]"), "metrics.jsonl:2: column 1: a JSON object must begin here, in UTF-8 without byte order mark");
  EXPECT_EQ(error(R"({"event":"stop"})"),
            "metrics.jsonl:2: event must be step, scales, health, ranks, shared_scales, experts, eval, sample, incident, machine, gpus, "
            "alert, recovery or end, got the "
            "string \"stop\"");
  EXPECT_EQ(error(R"({"event":"eval","step":1,"time":0,"loss":"x","tokens":1})"),
            "metrics.jsonl:2: loss must be a number or null, got the string \"x\"");
  EXPECT_EQ(error(R"({"event":"eval","step":-1,"time":0,"loss":1,"tokens":1})"),
            "metrics.jsonl:2: step must be an integer of at least 0, got -1");
  EXPECT_EQ(error(R"({"event":"eval","step":1e3,"time":0,"loss":1,"tokens":1})"),
            "metrics.jsonl:2: step must be an integer of at least 0, got 1000.0");
  EXPECT_EQ(error(R"({"event":"eval","step":18446744073709551615,"time":0,"loss":1,"tokens":1})"),
            "metrics.jsonl:2: step must be an integer of at least 0, got 1.8446744073709552e+19");
  EXPECT_EQ(error(R"({"event":"scales","step":1,"time":0,"amax":[1],"scale_min":[1,1],"scale_max":[1,1]})"),
            "metrics.jsonl:2: amax must have 2 entries, one per quantizer of run.json, got 1");
  EXPECT_NE(error(""), "");
  EXPECT_NE(error("\xff\xfe\x00"), "");
  EXPECT_NE(error(std::string(50000, '[')), "");
  EXPECT_NE(error("\x1b[2J").find("metrics.jsonl:2: "), std::string::npos);
  EXPECT_NE(error(std::string((1 << 20) + 1, ' ')).find("metrics.jsonl:2: a line may have at most"), std::string::npos);
}

TEST(RunFolder, AFileBeyondTheLimitOrOfAnotherKindIsRefused) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  append(folder.metrics(), std::string(100, ' '));
  EXPECT_NE(refusal(folder.folder(), {.file_bytes = 50}), "");
  std::filesystem::remove(folder.metrics());
  std::filesystem::create_directory(folder.metrics());
  EXPECT_NE(refusal(folder.folder()), "");
}

TEST(RunFolder, DamagedFactsAreRefusedWhereverTheyEnd) {
  const Folder folder;
  const std::string path = folder.folder() + "/run.json";
  write_run_facts(path, small_facts());
  const std::string whole = read_file(path, 1 << 20);
  for (std::size_t cut = 0; cut + 2 < whole.size(); cut += 61) {
    put(path, whole.substr(0, cut));
    EXPECT_THROW(read_run(folder.folder()), DataError);
  }
}

TEST(RunFolder, AStepToldTwiceCountsAsToldLast) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  for (const int step : {1, 2, 3, 2, 3, 4}) append(folder.metrics(), event_line(StepEvent{.step = step, .loss = double(step)}) + "\n");
  const RunRecord run = read_run(folder.folder());
  ASSERT_EQ(run.steps.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run.steps[std::size_t(i)].step, i + 1);
}

TEST(RunFolder, ALongSeriesIsThinnedEvenly) {
  const Folder folder;
  write_run_facts(folder.folder() + "/run.json", small_facts());
  std::string lines;
  for (int step = 0; step < 1000; ++step) lines += event_line(StepEvent{.step = step}) + "\n";
  append(folder.metrics(), lines);
  const RunRecord run = read_run(folder.folder(), {.steps = 64});
  ASSERT_LE(run.steps.size(), 65u);
  ASSERT_GE(run.steps.size(), 32u);
  const auto stride = run.steps[1].step - run.steps[0].step;
  for (std::size_t i = 0; i < run.steps.size(); ++i) ASSERT_EQ(run.steps[i].step, std::int64_t(i) * stride);
}

}  // namespace
}  // namespace octet::telemetry
