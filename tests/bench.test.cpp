#include <gtest/gtest.h>

#include <map>
#include <set>

#include "octet/base/error.hpp"
#include "octet/json/value.hpp"
#include "tests/testing/octet.hpp"

// `octet bench` through the program, on sizes so small that only its form can be judged.

namespace octet {
namespace {

using testing::Ended, testing::has;

// A row of this size may be found in a cache where its limit was measured in memory, and another process may have slowed the one and not
// the other. A core reads and writes 192 bytes a clock cycle of its first cache, at 5 GHz 100 times the slowest memory's 10 GB/s; a number
// in another unit than its limit is wrong by 1000 at least.
constexpr double most_share = 100;

constexpr const char* tiny =
    "bench --device cpu --quiet --tokens 64 --sequence 32 --repeat 3 --sample-ms 0.05 --working-set 1"
    " --set threads=1 --set model.layers=1 --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=96";

double number(const json::Value& object, const char* member) {
  const json::Value* value = object.find(member);
  if (value == nullptr) return -1;
  return value->real() ? *value->real() : value->integer() ? double(*value->integer()) : -1;
}

class Measured : public ::testing::Test {
 protected:
  void SetUp() override {
    ended = testing::run_octet(std::string(tiny) + " --recipe bf16,current,block128 --json rows.json", scratch.folder());
    ASSERT_EQ(ended.code, 0) << ended.err;
    result = json::load(scratch.at("rows.json"));
    ASSERT_NE(result.find("rows"), nullptr);
    rows = *result.find("rows")->array();
  }
  static std::string text(const json::Value& row, const char* member) { return *row.find(member)->text(); }

  testing::Scratch scratch;
  Ended ended;
  json::Value result;
  json::Array rows;
};

TEST_F(Measured, EveryGroupHasItsRows) {
  std::map<std::string, std::set<std::string>> names;
  for (const json::Value& row : rows) names[text(row, "group")].insert(text(row, "name"));
  const auto expect = [&](const char* group, std::initializer_list<const char*> wanted) {
    for (const char* name : wanted) EXPECT_TRUE(names[group].contains(name)) << group << ": " << name;
  };
  EXPECT_EQ(names["gemm"].size(), 15u) << "five layers, three products each";
  expect("gemm", {"qkv forward", "attention out dgrad", "mlp in wgrad", "mlp out forward", "head wgrad"});
  expect("quantize", {"x rows", "x rows + transposed", "dy rows + transposed", "w rows + transposed"});
  expect("attention", {"attention forward", "attention backward", "rope forward", "rope backward"});
  expect("norm",
         {"copy", "rmsnorm add", "layernorm add", "rmsnorm forward", "rmsnorm backward", "layernorm forward", "layernorm backward"});
  expect("activation", {"swiglu forward", "swiglu backward", "swiglu forward, saving codes", "swiglu forward again, from codes",
                        "swiglu backward, from codes", "embedding forward", "embedding backward", "cross-entropy"});
  expect("optimizer", {"adamw", "sum of squares"});
  expect("experts",
         {"route forward", "route backward", "expert map", "combine", "gather", "weighted swiglu forward", "weighted swiglu backward",
          "gate and up forward", "gate and up dgrad", "gate and up wgrad", "down forward", "down dgrad", "down wgrad"});
  expect("step", {"step"});
}

TEST_F(Measured, EveryRowIsARateBesideALimit) {
  EXPECT_GT(number(*result.find("limits"), "copy_bytes_per_second"), 0);
  for (const json::Value& row : rows) {
    const std::string what = text(row, "group") + ": " + text(row, "name") + ", " + text(row, "precision");
    EXPECT_TRUE(has(text(row, "unit"), text(row, "group") == "step" ? "tokens/s" : "/s")) << what;
    EXPECT_GT(number(row, "amount"), 0) << what;
    EXPECT_LE(number(row, "seconds_low"), number(row, "seconds")) << what;
    EXPECT_LE(number(row, "seconds"), number(row, "seconds_high")) << what;
    EXPECT_NEAR(number(row, "rate") * number(row, "seconds"), number(row, "amount"), 1e-9 * number(row, "amount")) << what;
    EXPECT_NEAR(number(row, "share") * number(row, "limit"), number(row, "rate"), 1e-9 * number(row, "rate")) << what;
    EXPECT_GT(number(row, "share"), 0) << what;
    EXPECT_LT(number(row, "share"), most_share) << what << ": nothing runs far beyond a limit of its own machine";
    EXPECT_TRUE(has(ended.out, text(row, "group") + ": " + text(row, "name"))) << "the table lacks " << what;
  }
}

TEST_F(Measured, AStepTellsWhereItsFloorComesFrom) {
  int steps = 0;
  for (const json::Value& row : rows) {
    if (text(row, "group") != "step") continue;
    ++steps;
    const json::Value& floor = *row.find("floor");
    const double parts = number(floor, "gemm_seconds") + number(floor, "attention_seconds") + number(floor, "memory_seconds");
    EXPECT_NEAR(parts, number(floor, "seconds"), 1e-9 * parts);
    EXPECT_NEAR(number(row, "limit") * parts, number(row, "amount"), 1e-9 * number(row, "amount"));
    EXPECT_GT(number(row, "peak_bytes"), 0);
  }
  EXPECT_EQ(steps, 3) << "one a recipe";
}

TEST(Bench, ARequestThatCannotBeMeasuredIsRefusedInOneLine) {
  const testing::Scratch scratch;
  const auto expect = [&](const std::string& line, std::initializer_list<const char*> says) {
    const Ended ended = testing::run_octet("bench " + line, scratch.folder());
    EXPECT_EQ(ended.code, int(ExitCode::usage)) << line << "\n" << ended.err;
    for (const char* part : says) EXPECT_TRUE(has(ended.err, part)) << line << "\nlacks \"" << part << "\" in\n" << ended.err;
  };
  expect("gem --device cpu", {"\"gem\"", "gemm, quantize"});
  expect("gemm --device cpu --recipe curent", {"\"curent\"", "did you mean \"current\"?"});
  expect("gemm --device cpu --model llama-tini", {"\"llama-tini\"", "did you mean \"llama-tiny\"?"});
  expect("gemm --device cpu --tokens 100 --sequence 32", {"--tokens 100", "multiple"});
}

TEST(Bench, CalibrationWritesConstantsThatThePlannerReads) {
  const testing::Scratch scratch;
  const Ended ended = testing::run_octet(std::string(tiny) + " --ranks 2 --calibrate machine.toml", scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.out, "of their floor in BF16")) << ended.out;
  EXPECT_FALSE(has(ended.out, "link_gbs")) << "links of 2 ranks are measured: " << ended.out;
  const Ended planned =
      testing::run_octet("plan --set model.size=llama-tiny --set train.batch=4 --gpus 2 --machine machine.toml", scratch.folder());
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_TRUE(has(planned.out, "2 per node")) << planned.out;
  EXPECT_TRUE(has(planned.out, "sequences of 512 tokens (data.sequence_length)")) << planned.out;
  EXPECT_FALSE(has(planned.out, "(--machine)")) << "it was given: " << planned.out;
}

TEST(AllReduce, BytesSentAreThoseOfTheFormulasAndErrorsThoseOfTheSums) {
  const testing::Scratch scratch;
  const Ended ended = testing::run_octet(
      "bench allreduce --ranks 2 --bytes 4K,256K --quality-ranks 2,8 --repeat 2 --sample-ms 0.05 --json sums.json", scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json::Value result = json::load(scratch.at("sums.json"));
  std::map<std::string, double> sent;
  for (const json::Value& row : *result.find("rows")->array()) {
    sent[*row.find("sum")->text() + " " + std::to_string(*row.find("bytes")->integer())] = number(row, "bytes_sent");
    EXPECT_GT(number(row, "seconds"), 0);
    EXPECT_DOUBLE_EQ(number(row, "bus_bytes_per_second"), number(row, "bytes") / number(row, "seconds"));  // 2 (n - 1) / n is 1
  }
  EXPECT_EQ(sent["f32 4096"], 4096);
  EXPECT_EQ(sent["bf16 262144"], 262144);
  EXPECT_EQ(sent["e4m3 4096"], 2048 + 2048 / 128);
  EXPECT_FALSE(sent.contains("e4m3_shared 4096")) << "a small tensor is summed in its own type";
  EXPECT_GT(sent["e4m3_shared 262144"], 131072);
  EXPECT_LT(sent["e4m3_shared 262144"], 131072 + 200) << "codes, a maximum and two tables of counts";

  std::map<std::string, json::Value> quality;
  for (const json::Value& q : *result.find("quality")->array())
    quality[*q.find("sum")->text() + (*q.find("equal_values")->boolean() ? " equal " : " ") + std::to_string(*q.find("ranks")->integer())] =
        q;
  ASSERT_EQ(quality.size(), 24u);
  const auto decibel = [&](const char* key) { return number(quality[key], "signal_to_noise_db"); };
  for (const char* key : {"e4m3 2", "e4m3 8", "e4m3 equal 8"}) EXPECT_GT(decibel(key), 26) << key;  // an error of 5%
  EXPECT_GT(decibel("bf16 8"), 45);
  EXPECT_GT(number(quality["e4m3_postscaled equal 8"], "overflow"), 0);
  EXPECT_LT(decibel("e4m3_postscaled equal 8"), decibel("e4m3_shared equal 8"));
  EXPECT_GT(number(quality["e4m3_prescaled 8"], "underflow"), 2 * number(quality["e4m3_postscaled 8"], "underflow"));
  EXPECT_LT(number(quality["e4m3_shared equal 8"], "mu"), 0.6);
}

TEST(AllReduce, DrawsTheBandwidthOfEverySum) {
  const testing::Scratch scratch;
  const Ended ended = testing::run_octet(
      "bench allreduce --ranks 2 --bytes 4K,512K --quality-ranks 2 --repeat 1 --sample-ms 0.05 --quiet --svg sums.svg", scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string svg = testing::bytes_of(scratch.at("sums.svg"));
  for (const char* part :
       {"<svg xmlns", "Sums over 2 ranks", ">f32</text>", ">bf16</text>", ">e4m3</text>", "copy of memory", "bus bandwidth"})
    EXPECT_TRUE(has(svg, part)) << part;
}

TEST(AllReduce, RefusesOptionsOfTheOtherMeasurement) {
  const testing::Scratch scratch;
  for (const char* words : {"allreduce --tokens 64",
                            "allreduce --recipe bf16",
                            "gemm --ranks 2",
                            "allreduce --bytes 3",
                            "allreduce --bytes 1X",
                            "allreduce --device tpu",
                            "gemm --topology",
                            "allreduce --topology --quality-ranks 2",
                            "allreduce --quality-ranks 0",
                            "allreduce --ranks -1",
                            "allreduces",
                            "allreduce --ranks 1 --svg one.svg",
                            "allreduce --topology --svg links.svg",
                            "allreduce --trace t.json",
                            "gemm --svg gemm.svg",
                            "scaling --bytes 4K",
                            "scaling --sample-ms 1",
                            "step --ranks 2 --working-set 1",
                            "step --ranks 2 --trace t.json",
                            "scaling --set ranks.data=2",
                            "scaling --ranks 4 --accumulate 6 --tokens 64 --sequence 32"})
    EXPECT_EQ(testing::run_octet(std::string("bench ") + words, scratch.folder()).code, 2) << words;
}

constexpr const char* tiny_model =
    " --device cpu --quiet --tokens 32 --sequence 16 --repeat 2"
    " --set threads=1 --set model.layers=1 --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=96";

// Events of a timeline: {rank, category} -> names.
std::map<std::pair<std::int64_t, std::string>, std::set<std::string>> events_of(const json::Value& trace) {
  std::map<std::pair<std::int64_t, std::string>, std::set<std::string>> out;
  for (const json::Value& e : *trace.find("traceEvents")->array())
    if (*e.find("ph")->text() == "X") out[{*e.find("pid")->integer(), *e.find("cat")->text()}].insert(*e.find("name")->text());
  return out;
}

TEST(BenchOnRanks, ScalingHasATableAPictureJsonAndATimelineOfEveryRank) {
  const testing::Scratch scratch;
  const Ended ended = testing::run_octet(
      std::string("bench scaling --ranks 2 --json scaling.json --svg scaling.svg --trace trace.json") + tiny_model, scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* part : {"strong", "weak", "efficiency", "exposed comm ms", "update ms", "2 ranks, threads of one process"})
    EXPECT_TRUE(has(ended.out, part)) << part << "\n" << ended.out;
  const json::Value result = json::load(scratch.at("scaling.json"));
  int rows = 0;
  for (const json::Value& row : *result.find("rows")->array()) {
    const json::Value& mean = *row.find("mean");
    const double seconds = number(mean, "seconds"),
                 parts = number(mean, "compute_seconds") + number(mean, "exposed_communication_seconds") + number(mean, "update_seconds");
    EXPECT_NEAR(parts, seconds, 1e-9);
    EXPECT_NEAR(number(row, "efficiency") * number(row, "ranks"), number(row, "gain"), 1e-9);
    EXPECT_EQ(row.find("each")->array()->size(), std::size_t(*row.find("ranks")->integer()));
    ++rows;
  }
  EXPECT_GE(rows, 4);
  EXPECT_TRUE(has(testing::bytes_of(scratch.at("scaling.svg")), "Training steps on 1 to 2 ranks"));
  auto events = events_of(json::load(scratch.at("trace.json")));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_EQ((events[{rank, "step"}].size()), 2u);
    EXPECT_EQ((events[{rank, "part"}]),
              (std::set<std::string>{"forward and backward", "results of all ranks", "optimizer", "read-out", "scales and codes"}));
    EXPECT_TRUE((events[{rank, "exchange"}].contains("all_reduce (sum) of f64 [1]"))) << "the loss";
  }
}

TEST(BenchOnRanks, AStepHasALinePerRank) {
  const testing::Scratch scratch;
  const Ended ended =
      testing::run_octet(std::string("bench step --ranks 2 --recipe bf16,current --json step.json") + tiny_model, scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json::Value result = json::load(scratch.at("step.json"));
  ASSERT_EQ(result.find("rows")->array()->size(), 2u);
  for (const json::Value& row : *result.find("rows")->array()) {
    EXPECT_EQ(number(row, "tokens"), 64);
    ASSERT_EQ(row.find("each")->array()->size(), 2u);
    for (const json::Value& rank : *row.find("each")->array()) EXPECT_GT(number(rank, "peak_bytes"), 0);
    EXPECT_NEAR(number(row, "tokens_per_second") * number(row, "seconds"), 64, 1e-6);
  }
}

TEST(BenchOnRanks, ProcessesOfALauncherMeasureTogetherAndOnlyTheFirstPrints) {
  const testing::Scratch scratch;
  const Ended ended = testing::run_octet(std::string("launch --device cpu --ranks 2 bench scaling") + tiny_model, scratch.folder());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::size_t first = ended.out.find("2 ranks");
  ASSERT_NE(first, std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("2 ranks", first + 1), std::string::npos) << ended.out;
  const Ended alone =
      testing::run_octet(std::string("launch --device cpu --ranks 2 bench step") + tiny_model + " --working-set 1", scratch.folder());
  EXPECT_EQ(alone.code, int(ExitCode::usage)) << "an option of one rank";
  const Ended kernels = testing::run_child({"/usr/bin/env", "OCTET_THREAD_RANKS=2", OCTET_PROGRAM, "bench", "gemm"}, scratch.folder());
  EXPECT_EQ(kernels.code, int(ExitCode::usage));
  EXPECT_TRUE(has(kernels.err, "measures one rank, and 2 were started")) << kernels.err;
}

// The machines of CI have no GPU, so CPU ranks are asked for.
TEST(Doctor, ChecksAMachineAndGivesTheReason) {
  const testing::Scratch scratch;
  const auto doctor = [&](const std::string& options) { return testing::run_octet("doctor " + options, scratch.folder()); };
  const Ended enough = doctor("--expect-gpus 0 --cpu --min-allreduce-gbs 0.000001");
  EXPECT_EQ(enough.code, 0) << enough.err;
  EXPECT_TRUE(has(enough.out, "GB/s bus bandwidth of a sum in bf16 over 2 ranks")) << enough.out;
  const Ended slow = doctor("--cpu --min-allreduce-gbs 1000");
  EXPECT_EQ(slow.code, int(ExitCode::device));
  EXPECT_TRUE(has(slow.err, "--min-allreduce-gbs 1000: ")) << slow.err;
  const Ended none = doctor("--expect-gpus 3");
  EXPECT_EQ(none.code, int(ExitCode::device));
  EXPECT_TRUE(has(none.err, "--expect-gpus 3: this machine shows 0")) << none.err;
  EXPECT_EQ(doctor("--min-allreduce-gbs 1").code, int(ExitCode::device)) << "CPU ranks count only if asked for";
  for (const char* bad : {"--cpu", "--ranks 3", "--min-allreduce-gbs -1", "--expect-gpus x"}) EXPECT_EQ(doctor(bad).code, 2) << bad;
}

}  // namespace
}  // namespace octet
