#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/numerics/philox.hpp"
#include "tests/testing/begun_octet.hpp"
#include "tests/testing/octet.hpp"
#include "tests/testing/run_events.hpp"
#include "tests/testing/small_files.hpp"

// Runs of the program that are killed, stopped, starved of disk, and gone on with: what they leave must be what a run leaves that nothing
// happened to. OCTET_KILLS=500 makes a campaign of it for every recipe, OCTET_BUSY=2 lets so many threads of the test compete for the
// processors meanwhile.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::Ended, testing::has, testing::Scratch;

std::string config() {
  return "threads = 1\n" +
         testing::tiny_config("steps = 60\nbatch = 2\naccumulate = 3\neval_every = 7\n[recipe]\nhistory = 8\n[checkpoint]\nevery = 4\n");
}

/// Threads that do nothing but take processors away.
class Busy {
 public:
  explicit Busy(std::int64_t threads) {
    for (std::int64_t i = 0; i < threads; ++i)
      threads_.emplace_back([](const std::stop_token& stop) {
        for (std::atomic<unsigned> x{0}; !stop.stop_requested();) ++x;
      });
  }

 private:
  std::vector<std::jthread> threads_;
};

class Interrupted : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("run.toml", config());
  }
  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  void whole_run(const std::string& recipe) const {
    const Ended ended = octet("train run.toml --quiet --name whole --set recipe.name=" + recipe);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  // "train --resume" where there is something to resume, the same command again where the run was killed before it had its configuration.
  std::string next_command(const std::string& recipe) const {
    if (fs::exists(scratch.at("runs/cut/config.toml"))) return "train --quiet --resume runs/cut";
    fs::remove_all(scratch.at("runs/cut"));
    return "train run.toml --quiet --name cut --set recipe.name=" + recipe;
  }
  // Whether a save that began after `since` is under way, or, when its process has ended, was.
  bool saving(fs::file_time_type since = fs::file_time_type::min()) const {
    std::error_code none;
    for (fs::directory_iterator at(scratch.at("runs/cut/checkpoints"), none), end; !none && at != end; at.increment(none)) {
      std::error_code gone;  // its working folder is renamed when it is complete
      if (!at->path().filename().string().starts_with(".tmp-")) continue;
      if (const auto time = fs::last_write_time(at->path(), gone); !gone && time >= since) return true;
    }
    return false;
  }
  /// Steps that the interrupted run has told of so far.
  std::int64_t steps_done() const {
    const std::string told = bytes_of(scratch.at("runs/cut/metrics.jsonl")), step = "\"event\":\"step\"";
    std::int64_t n = 0;
    for (std::size_t at = told.find(step); at != told.npos; at = told.find(step, at + step.size())) ++n;
    return n;
  }
  void expect_same() const {
    EXPECT_TRUE(bytes_of(scratch.at("runs/whole/weights/model.safetensors")) == bytes_of(scratch.at("runs/cut/weights/model.safetensors")));
    EXPECT_EQ(testing::untimed_events(scratch.at("runs/whole")), testing::untimed_events(scratch.at("runs/cut")));
    EXPECT_FALSE(saving());
  }
  // Of the recipes, "delayed" has the most state, so it is interrupted most often; every recipe resumes bit for bit in resume.test.cpp.
  std::int64_t usual(std::int64_t most, std::int64_t others) const { return GetParam() == "delayed" ? most : others; }
  static std::int64_t times(const char* variable, std::int64_t usual) {
    const char* text = std::getenv(variable);
    return text == nullptr ? usual : std::strtoll(text, nullptr, 10);
  }

  Scratch scratch;
};

INSTANTIATE_TEST_SUITE_P(Checkpoints, Interrupted, ::testing::Values("bf16", "delayed", "current", "block128", "mxfp8"));

// Every third kill waits for a save and comes at a random moment of it, or soon after where the disk is fast: until enough came within one.
// A run that ends before is begun again.
TEST_P(Interrupted, KilledAtRandomMomentsItEndsAsIfNothingHadHappened) {
  const Busy neighbours(times("OCTET_BUSY", 0));
  whole_run(GetParam());
  const std::int64_t wanted = times("OCTET_KILLS", usual(20, 8)), wanted_within = wanted * 3 / 10;
  std::int64_t kills = 0, within_a_save = 0, whole_runs = 0;
  for (std::uint64_t attempt = 0; kills < wanted || within_a_save < wanted_within; ++attempt) {
    ASSERT_LT(attempt, std::uint64_t(20 * wanted)) << kills << " kills";
    const RandomWords r = philox(std::uint64_t(wanted), attempt);
    const auto begun = fs::file_time_type::clock::now();
    BegunOctet child(next_command(GetParam()), scratch.folder());
    if (attempt % 3 == 0) {
      while (child.running() && !saving(begun)) std::this_thread::sleep_for(100us);
      std::this_thread::sleep_for(std::chrono::microseconds(r.w[0] % (4000u >> r.w[1] % 4)));
    } else {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(r.w[0] % 600);
      while (child.running() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    }
    if (child.running()) {
      child.signal(SIGKILL);
      ++kills;
      child.end();
      within_a_save += saving(begun);
      continue;
    }
    ASSERT_EQ(child.end(), 0);
    expect_same();
    if (HasFailure()) return;
    ++whole_runs;
    fs::remove_all(scratch.at("runs/cut"));
  }
  BegunOctet last(next_command(GetParam()), scratch.folder());
  ASSERT_EQ(last.end(), 0);
  expect_same();
  RecordProperty("kills_within_a_save", int(within_a_save));
  EXPECT_GE(within_a_save, wanted_within) << kills << " kills, " << whole_runs << " whole runs";
}

TEST_P(Interrupted, StoppedBySignalsItSavesAndGoesOn) {
  whole_run(GetParam());
  int stopped = 0;
  for (std::uint64_t attempt = 0; attempt < std::uint64_t(usual(6, 3)); ++attempt) {
    const std::int64_t wanted = steps_done() + 2 + philox(7, attempt).w[0] % 7;  // in all at most 48 of the run's 60
    BegunOctet child(next_command(GetParam()), scratch.folder());
    while (child.running() && steps_done() < wanted) std::this_thread::sleep_for(1ms);
    child.signal(std::array{SIGTERM, SIGINT, SIGUSR1}[attempt % 3]);
    const int code = child.end();
    ASSERT_TRUE(code == int(ExitCode::interrupted) || code == 0) << code;
    if (code == 0) break;
    ++stopped;
    EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/run.json")), "\"stopped\""));
  }
  EXPECT_GE(stopped, 1);
  BegunOctet last(next_command(GetParam()), scratch.folder());
  ASSERT_EQ(last.end(), 0);
  expect_same();
}

class Calibrating : public Interrupted {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, Calibrating, ::testing::Values("delayed", "global"));

TEST_P(Calibrating, EndsBeforeTheNextPassAndBeginsAgain) {
  const std::string longer = " --set recipe.calibration=64 --set train.accumulate=64 --steps 2 --set recipe.name=" + GetParam();
  ASSERT_EQ(octet("train run.toml --quiet --name whole" + longer).code, 0);
  BegunOctet run("train run.toml --quiet --name cut" + longer, scratch.folder());
  while (run.running() && !fs::exists(scratch.at("runs/cut/metrics.jsonl"))) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(5ms);
  run.signal(SIGINT);
  EXPECT_EQ(run.end(), int(ExitCode::interrupted));
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/run.json")), "\"stopped\""));
  EXPECT_TRUE(!fs::exists(scratch.at("runs/cut/checkpoints")) || fs::is_empty(scratch.at("runs/cut/checkpoints")))
      << "its scales are not made yet";
  const Ended again = octet("train --resume runs/cut");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(again.err, "runs/cut has no checkpoint yet: begins again")) << again.err;
  expect_same();
}

class Starved : public Interrupted {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, Starved, ::testing::Values("current"));

TEST_P(Starved, WithoutRoomForACheckpointItTrainsOnKeepsTheOldOneAndSaysSo) {
  whole_run(GetParam());
  fs::copy(scratch.at("runs/whole"), scratch.at("runs/cut"), fs::copy_options::recursive);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch.at("runs/cut/checkpoints"))) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 2u);
  for (std::size_t i = 1; i < names.size(); ++i) fs::remove_all(scratch.at("runs/cut/checkpoints/" + names[i]));
  Ended ended;
  {
    const testing::SmallFiles small(500 << 10);  // a disk that is full for large files alone
    ended = octet("train --resume runs/cut");
  }
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "was not saved, training continues") && has(ended.err, "File too large")) << ended.err;
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "\"kind\":\"checkpoint\""));
  EXPECT_TRUE(fs::exists(scratch.at("runs/cut/checkpoints/" + names[0] + "/MANIFEST.json"))) << "the previous checkpoint stays";
  EXPECT_TRUE(bytes_of(scratch.at("runs/whole/weights/model.safetensors")) == bytes_of(scratch.at("runs/cut/weights/model.safetensors")));
}

class Contested : public Interrupted {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, Contested, ::testing::Values("bf16"));

TEST_P(Contested, TwoTrainersInOneFolderAreOneTooMany) {
  BegunOctet first("train run.toml --quiet --name cut --steps 100000", scratch.folder());
  while (first.running() && !fs::exists(scratch.at("runs/cut/metrics.jsonl"))) std::this_thread::sleep_for(1ms);
  const std::string before = bytes_of(scratch.at("runs/cut/config.toml"));
  const Ended second = octet("train --resume runs/cut --steps 5");
  EXPECT_EQ(second.code, int(ExitCode::io)) << second.err;
  EXPECT_TRUE(has(second.err, "runs/cut belongs to a run that is still going, process ")) << second.err;
  EXPECT_EQ(bytes_of(scratch.at("runs/cut/config.toml")), before) << "the second one must change nothing";
  first.signal(SIGTERM);
  EXPECT_EQ(first.end(), int(ExitCode::interrupted));
}

TEST_P(Contested, AskedForACheckpointItSavesOneAndGoesOn) {
  BegunOctet run("train run.toml --quiet --name cut --steps 100000 --set checkpoint.every=0 --set checkpoint.minutes=0", scratch.folder());
  while (run.running() && !has(bytes_of(scratch.at("runs/cut/metrics.jsonl")), "\"event\":\"step\"")) std::this_thread::sleep_for(1ms);
  const auto saved = [&] {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(scratch.at("runs/cut/checkpoints"), none))
      if (entry.path().filename().string().starts_with("step-")) return true;
    return false;
  };
  EXPECT_FALSE(saved());
  run.signal(SIGUSR2);
  while (run.running() && !saved()) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(run.running()) << run.end();
  run.signal(SIGTERM);
  EXPECT_EQ(run.end(), int(ExitCode::interrupted));
}

// A matrix library may use the stack pointer for its own data while it multiplies: a handler on that thread would write into them.
TEST_P(Contested, AThousandSignalsAmidItsMultiplicationsChangeNothing) {
  const std::string wide = " --steps 6 --set checkpoint.every=0 --set checkpoint.minutes=0 --set model.width=256 --set train.batch=32";
  ASSERT_EQ(octet("train run.toml --quiet --name whole" + wide).code, 0);
  BegunOctet run("train run.toml --quiet --name cut" + wide, scratch.folder());
  while (run.running() && !fs::exists(scratch.at("runs/cut/metrics.jsonl"))) std::this_thread::sleep_for(1ms);
  int sent = 0;
  for (; run.running(); ++sent) {
    run.signal(SIGUSR2);
    std::this_thread::sleep_for(200us);
  }
  EXPECT_EQ(run.end(), 0);
  EXPECT_GT(sent, 100);
  expect_same();
}

TEST_P(Contested, ACommandThatDoesNotTrainEndsAtTheFirstSignal) {
  BegunOctet bench("bench gemm --repeat 10000", scratch.folder());
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(bench.running());
  bench.signal(SIGINT);
  EXPECT_EQ(bench.end(), int(ExitCode::interrupted)) << "with the rows that are complete";
}

TEST_P(Contested, ASecondSignalEndsItAtOnce) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer holds signals back until the program next calls the system, and two of them become one";
#endif
  BegunOctet run("train run.toml --quiet --name cut --steps 100000 --set model.width=512 --set model.layers=8 --set train.batch=64",
                 scratch.folder());
  while (run.running() && !fs::exists(scratch.at("runs/cut/metrics.jsonl"))) std::this_thread::sleep_for(1ms);
  run.signal(SIGINT);
  std::this_thread::sleep_for(5ms);
  run.signal(SIGINT);
  EXPECT_EQ(run.end(), -1);
}

}  // namespace
}  // namespace octet
