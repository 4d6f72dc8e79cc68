#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/value.hpp"
#include "octet/telemetry/run_record.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/rank_processes.hpp"
#include "tests/testing/run_events.hpp"

// Runs of the program on several ranks that are stopped, asked for a checkpoint, and resumed.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::Ended, testing::has, testing::RankProcesses, testing::Scratch;

class ProgramOnRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("run.toml", "threads = 1\n" + testing::tiny_config("steps = 40\nbatch = 2\naccumulate = 2\neval_every = 9\n"
                                                                     "[recipe]\nname = \"current\"\n[checkpoint]\nevery = 4\n"));
  }
  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  // The same run on ranks that are threads, without an incident.
  void whole_run(int ranks) const {
    const Ended ended = octet(format("train run.toml --quiet --name whole --set ranks.data={}", ranks));
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  std::int64_t steps_done() const {
    const std::string events = bytes_of(scratch.at("runs/cut/metrics.jsonl")), step = "\"event\":\"step\"";
    std::int64_t n = 0;
    for (std::size_t at = events.find(step); at != events.npos; at = events.find(step, at + step.size())) ++n;
    return n;
  }
  void wait_for_steps(BegunOctet& program, std::int64_t steps) const {
    while (program.running() && steps_done() < steps) std::this_thread::sleep_for(1ms);
  }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(scratch.at("runs/cut/checkpoints"), none))
      out.push_back(entry.path().filename().string());
    return out;
  }
  std::string weights(const std::string& run) const { return bytes_of(scratch.at("runs/" + run + "/weights/model.safetensors")); }
  void expect_same() const {
    EXPECT_TRUE(weights("whole") == weights("cut"));
    EXPECT_EQ(testing::untimed_events(scratch.at("runs/whole")), testing::untimed_events(scratch.at("runs/cut")));
  }

  Scratch scratch;
};

TEST_F(ProgramOnRanks, TracedTheyShareOneTimeline) {
  const Ended ended = octet("train run.toml --quiet --name traced --steps 6 --trace 2 --set ranks.data=2 --set ranks.zero=1");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const json::Value trace = json::load(scratch.at("runs/traced/trace.json"));
  std::map<std::int64_t, int> steps, micro_batches, gathers;
  for (const json::Value& e : *trace.find("traceEvents")->array()) {
    const std::string name = *e.find("name")->text();
    const std::int64_t rank = *e.find("pid")->integer();
    if (name == "step 4" || name == "step 5") ++steps[rank];
    if (name == "forward and backward") ++micro_batches[rank];
    if (name.starts_with("all_gather")) ++gathers[rank];
  }
  EXPECT_EQ(steps, (std::map<std::int64_t, int>{{0, 2}, {1, 2}}));
  EXPECT_EQ(micro_batches, (std::map<std::int64_t, int>{{0, 4}, {1, 4}}));
  EXPECT_GT(gathers[1], 0);
  EXPECT_EQ(gathers[0], gathers[1]);
}

TEST_F(ProgramOnRanks, StoppedByASignalTheySaveOnceAndResumeBitForBit) {
  whole_run(2);
  int stopped = 0;
  for (const int number : {SIGTERM, SIGINT}) {
    BegunOctet run(stopped == 0 ? "train run.toml --quiet --name cut --set ranks.data=2" : "train --quiet --resume runs/cut",
                   scratch.folder());
    wait_for_steps(run, steps_done() + 5);
    run.signal(number);
    ASSERT_EQ(run.end(), int(ExitCode::interrupted));
    ++stopped;
    EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/run.json")), "\"stopped\""));
    const std::string last = format("step-{}", std::to_string(1000000000 + steps_done()).substr(1));
    const std::vector<std::string> saved = checkpoints();
    EXPECT_EQ(std::count(saved.begin(), saved.end(), last), 1) << last;
  }
  ASSERT_EQ(octet("train --quiet --resume runs/cut").code, 0);
  expect_same();
}

TEST_F(ProgramOnRanks, AskedForACheckpointTheySaveOneAndContinue) {
  BegunOctet run("train run.toml --quiet --name cut --set ranks.data=2 --steps 100000 --set checkpoint.every=0 --set checkpoint.minutes=0",
                 scratch.folder());
  wait_for_steps(run, 2);
  EXPECT_TRUE(checkpoints().empty());
  run.signal(SIGUSR2);
  const auto saved = [&] {
    const std::vector<std::string> names = checkpoints();
    return std::count_if(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("step-"); });
  };
  while (run.running() && saved() == 0) std::this_thread::sleep_for(1ms);
  wait_for_steps(run, steps_done() + 20);
  EXPECT_EQ(saved(), 1);
  run.signal(SIGTERM);
  EXPECT_EQ(run.end(), int(ExitCode::interrupted));
}

TEST_F(ProgramOnRanks, EndByTheClock) {
  const Ended ended = octet("train run.toml --quiet --name cut --set ranks.data=2 --set train.steps=0 --max-time 1s");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "\"reason\":\"time is up\""));
  EXPECT_GE(steps_done(), 2);
}

TEST_F(ProgramOnRanks, OneRankOfALauncherNeedsNoMpiOnACpu) {
  ::setenv("RANK", "0", 1), ::setenv("WORLD_SIZE", "1", 1);
  const Ended ended = octet("train run.toml --quiet --steps 2 --set device=cpu");
  ::unsetenv("RANK"), ::unsetenv("WORLD_SIZE");
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(ProgramOnRanks, EvaluateAShareEach) {
  whole_run(2);
  const auto loss_of = [&](const Ended& e) {
    EXPECT_EQ(e.code, 0) << e.err;
    const std::size_t at = e.out.find("loss ");
    return at == e.out.npos ? 0 : std::strtod(e.out.c_str() + at + 5, nullptr);
  };
  const double one = loss_of(octet("eval runs/whole --recipe current"));
  ::setenv("OCTET_THREAD_RANKS", "3", 1);
  const Ended three = octet("eval runs/whole --recipe current");
  ::unsetenv("OCTET_THREAD_RANKS");
  EXPECT_GT(one, 0.1);
  EXPECT_NEAR(loss_of(three), one, 2e-6) << "printed with six digits";
  EXPECT_EQ(three.out.find("loss "), three.out.rfind("loss ")) << "rank 0 alone prints: " << three.out;
}

TEST_F(ProgramOnRanks, CompareArmsThatEachTrainOnAll) {
  const std::string line = "compare run.toml --quiet --recipes current --twins 0 --name cmp --steps 12 --set recipe.name=bf16 ";
  const Ended two = octet(line + "--set ranks.data=2");
  EXPECT_TRUE(two.code == 0 || two.code == int(ExitCode::gap)) << two.err;
  for (const char* arm : {"bf16", "current"}) {
    const std::string facts = bytes_of(scratch.at(format("runs/cmp/{}/run.json", arm)));
    EXPECT_TRUE(has(facts, "\"started\": 2") && has(facts, "\"finished\"")) << facts;
  }
  EXPECT_TRUE(has(two.out, "current") && has(two.out, "report: runs/cmp/report.html")) << two.out;
  const Ended again = octet("compare --quiet --resume runs/cmp");
  EXPECT_EQ(again.out, two.out) << again.err;
}

// A token beyond the vocabulary, which only the reading rank meets.
void damage_a_token(const Scratch& scratch) {
  for (const auto& entry : fs::directory_iterator(scratch.at("data"))) {
    if (entry.path().extension() != ".tok") continue;
    std::string bytes = bytes_of(entry.path().string());
    bytes[bytes.size() / 2] = bytes[bytes.size() / 2 + 1] = '\xff';
    std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
}

TEST_F(ProgramOnRanks, EndByTheErrorOfTheOneThatCannotReadItsData) {
  damage_a_token(scratch);
  const Ended ended = octet("train run.toml --quiet --name cut --set ranks.data=2 --set data.verify=false --steps 2000");
  EXPECT_EQ(ended.code, int(ExitCode::data)) << ended.err;
  EXPECT_TRUE(has(ended.err, "octet: rank ") && has(ended.err, " of 2 on ") && has(ended.err, ".tok")) << ended.err;
  EXPECT_EQ(ended.err.find("octet: "), ended.err.rfind("octet: ")) << "one line: " << ended.err;
  EXPECT_LT(ended.seconds, 50) << "not by the limit of 60 s";
}

class ProgramOverMpi : public ProgramOnRanks {
 protected:
  void SetUp() override {
    if (std::string(OCTET_MPIRUN).empty()) GTEST_SKIP() << "MPI was not installed when this was built";
    ProgramOnRanks::SetUp();
  }
  std::string errors() const { return bytes_of(scratch.at("err")); }
};

TEST_F(ProgramOverMpi, HasTheBitsOfThreads) {
  whole_run(2);
  RankProcesses ranks(2, "train run.toml --quiet --name cut", scratch.folder(), scratch.at("err"));
  ASSERT_EQ(ranks.mpirun().end(), 0) << errors();
  expect_same();
}

// Gradients are summed over all ranks, or for the part of each.
TEST_F(ProgramOverMpi, HasTheMemoryOfItsPlan) {
  for (const char* zero : {"0", "2"}) {
    const std::string name = format("zero{}", zero), keys = format(" --set train.eval_every=1 --set ranks.zero={}", zero);
    RankProcesses ranks(2, "train run.toml --quiet --steps 2 --name " + name + keys, scratch.folder(), scratch.at("err"));
    ASSERT_EQ(ranks.mpirun().end(), 0) << errors();
    const telemetry::RunRecord run = telemetry::read_run(scratch.at("runs/" + name));
    EXPECT_EQ(run.steps.back().memory_bytes, run.facts.memory.peak) << zero;
  }
}

// Two hosts, each with files of its own under the same names.
TEST_F(ProgramOverMpi, RefusesAnotherModelFolderOnARank) {
  ASSERT_EQ(octet("train run.toml --quiet --name first --steps 1").code, 0);
  const auto run = [&](const auto& change) {
    const std::string line = "train run.toml --quiet --name cut --steps 2 --set model.init=model", other = scratch.at("other");
    fs::remove_all(other), fs::remove_all(scratch.at("model")), fs::remove_all(scratch.at("runs/cut"));
    fs::copy(scratch.at("runs/first/weights"), scratch.at("model"), fs::copy_options::recursive);
    fs::create_directory(other);
    for (const char* name : {"run.toml", "data", "model"}) fs::copy(scratch.at(name), other + "/" + name, fs::copy_options::recursive);
    change(other + "/model");
    RankProcesses ranks(1, line + " : -wdir " + other + " -n 1 " + OCTET_PROGRAM + " " + line, scratch.folder(), scratch.at("err"));
    return ranks.mpirun().end();
  };
  EXPECT_EQ(run([](const std::string&) {}), 0) << errors();
  const int code = run([](const std::string& model) {
    std::string weights = bytes_of(model + "/model.safetensors");
    weights[weights.size() - 100] ^= 1;
    std::ofstream(model + "/model.safetensors", std::ios::binary) << weights;
    std::ofstream(model + "/config.json", std::ios::app) << "\n";
  });
  EXPECT_EQ(code, int(ExitCode::usage)) << errors();
  EXPECT_TRUE(has(errors(), "octet: ranks of one run must be alike: the checksum of config.json and tokenizer files of rank 1 is ") &&
              has(errors(), "; the checksum of the weights in model.init of rank 1 is "))
      << errors();
  EXPECT_FALSE(fs::exists(scratch.at("runs/cut")));
  const std::string line = "eval model --data data";
  RankProcesses ranks(1, line + " : -wdir " + scratch.at("other") + " -n 1 " + OCTET_PROGRAM + " " + line, scratch.folder(),
                      scratch.at("err"));
  EXPECT_EQ(ranks.mpirun().end(), int(ExitCode::usage)) << errors();
  EXPECT_TRUE(has(errors(), "ranks of one run must be alike: the checksum of the weights of rank 1 is ")) << errors();
}

TEST_F(ProgramOverMpi, ASignalToOneRankStopsAllAfterOneStep) {
  whole_run(2);
  {
    RankProcesses ranks(2, "train run.toml --quiet --name cut", scratch.folder(), scratch.at("err"));
    wait_for_steps(ranks.mpirun(), 5);
    ASSERT_EQ(ranks.processes().size(), 2u) << errors();
    ::kill(ranks.processes().at(1), SIGTERM);
    EXPECT_EQ(ranks.mpirun().end(), int(ExitCode::interrupted)) << errors();
  }
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/run.json")), "\"stopped\""));
  RankProcesses again(2, "train --quiet --resume runs/cut", scratch.folder(), scratch.at("err"));
  ASSERT_EQ(again.mpirun().end(), 0) << errors();
  expect_same();
}

TEST_F(ProgramOverMpi, EndsByTheErrorOfTheRankThatCannotReadItsData) {
  damage_a_token(scratch);
  RankProcesses run(2, "train run.toml --quiet --name cut --set data.verify=false --steps 2000", scratch.folder(), scratch.at("err"));
  EXPECT_EQ(run.mpirun().end(), int(ExitCode::data)) << errors();
  EXPECT_TRUE(has(errors(), "octet: rank ") && has(errors(), " of 2 on ") && has(errors(), ".tok")) << errors();
}

// No file of rank 1 may grow any more, and later it may again.
TEST_F(ProgramOverMpi, ContinuesWhereTheDiskOfARankIsFullAndSavesOnceItIsNot) {
  RankProcesses run(2, "train run.toml --name cut --steps 100000 --set ranks.zero=1", scratch.folder(), scratch.at("err"));
  const auto newest = [&] {
    std::string out;
    for (const std::string& name : checkpoints())
      if (name.starts_with("step-")) out = std::max(out, name);
    return out;
  };
  const auto wait_until = [&](const auto& holds) {
    while (run.mpirun().running() && !holds()) std::this_thread::sleep_for(1ms);
  };
  const auto limit_files = [&](rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    ASSERT_EQ(::prlimit(run.processes().at(1), RLIMIT_FSIZE, &limit, nullptr), 0);
  };
  wait_until([&] { return !newest().empty(); });
  limit_files(1000);
  wait_until([&] { return has(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "training continues: rank 1 on "); });
  const std::string events = bytes_of(scratch.at("runs/cut/metrics.jsonl")), good = newest();
  const std::size_t at = events.find("training continues: rank 1 on ");
  ASSERT_NE(at, events.npos) << errors();
  EXPECT_TRUE(has(events.substr(at, 200), "/state-1.safetensors")) << events.substr(at, 200);
  wait_until([&] { return has(errors(), "training continues: rank 1 on "); });  // mpirun passes it on
  EXPECT_TRUE(has(errors(), "training continues: rank 1 on ")) << errors();
  wait_for_steps(run.mpirun(), steps_done() + 10);
  EXPECT_EQ(newest(), good) << "no incomplete checkpoint has its name";
  EXPECT_EQ(octet("inspect runs/cut/checkpoints/" + good).code, 0);
  limit_files(RLIM_INFINITY);
  wait_until([&] { return newest() > good; });
  ::kill(run.processes().at(1), SIGTERM);
  EXPECT_EQ(run.mpirun().end(), int(ExitCode::interrupted)) << errors();
  EXPECT_EQ(octet("inspect runs/cut/checkpoints/" + newest()).code, 0);
}

TEST_F(ProgramOverMpi, ARunResumesOnAnotherNumberOfRanks) {
  whole_run(2);
  const Ended refused = octet("train --quiet --resume runs/whole --set ranks.data=1 --steps 50");
  EXPECT_EQ(refused.code, int(ExitCode::usage));
  EXPECT_TRUE(has(refused.err, "set train.accumulate = 4")) << refused.err;
  RankProcesses ranks(4, "train --quiet --resume runs/whole --set train.accumulate=1 --steps 50", scratch.folder(), scratch.at("err"));
  EXPECT_EQ(ranks.mpirun().end(), 0) << errors();
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/whole/config.toml")), "[ranks]\ndata = 4\n"));
}

}  // namespace
}  // namespace octet
