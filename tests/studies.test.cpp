#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/numerics/philox.hpp"
#include "tests/testing/begun_octet.hpp"
#include "tests/testing/octet.hpp"

// Comparisons that are killed or stopped and gone on with: they must end as one that nothing happened to. OCTET_KILLS=500 makes a campaign
// of it.

namespace octet {
namespace {
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::BegunOctet, testing::bytes_of, testing::Ended, testing::has, testing::Scratch;

const std::string begin =
    "compare run.toml --quiet --recipes delayed --arm slow:recipe.name=current,optim.learning_rate=1e-3 --seeds 2 --name ";
const std::vector<std::string> runs{"bf16-seed1", "bf16-twin1-seed1", "delayed-seed1", "slow-seed1",
                                    "bf16-seed2", "bf16-twin1-seed2", "delayed-seed2", "slow-seed2"};
const std::string go_on = "compare --quiet --resume runs/cut";

class Studies : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write(
        "run.toml",
        "threads = 1\n" +
            testing::tiny_config("steps = 40\nbatch = 2\neval_every = 7\naverage = 0.6\n[recipe]\nhistory = 4\n[checkpoint]\nevery = 4\n"));
  }
  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  Ended whole_study() const {
    const Ended ended = octet(begin + "whole");
    EXPECT_TRUE(ended_well(ended.code)) << ended.err;
    return ended;
  }
  static bool ended_well(int code) { return code == int(ExitCode::done) || code == int(ExitCode::gap); }
  // From its beginning where it was killed before it had its file.
  std::string next_line() const {
    if (fs::exists(scratch.at("runs/cut/study.toml"))) return go_on;
    fs::remove_all(scratch.at("runs/cut"));
    return begin + "cut";
  }
  bool has_checkpoint(const std::string& run) const {
    std::error_code none;
    for (fs::directory_iterator at(scratch.at("runs/cut/" + run + "/checkpoints"), none), end; !none && at != end; at.increment(none))
      if (at->path().filename().string().starts_with("step-")) return true;
    return false;
  }
  bool is_over(const std::string& run) const { return has(bytes_of(scratch.at("runs/cut/" + run + "/run.json")), "\"finished\""); }
  /// compare.json but what tells of time.
  std::string compared(const std::string& study) const {
    std::string out;
    std::istringstream members(bytes_of(scratch.at("runs/" + study + "/compare.json")));
    for (std::string member; std::getline(members, member, ',');)
      if (!has(member, "\"tokens_per_second\"") && !has(member, "\"speed_ratio\"")) out += member + ",";
    return out;
  }
  void expect_same() const {
    EXPECT_TRUE(has(compared("whole"), "\"gradient_cosine\"") && !has(compared("whole"), "\"average_loss\": null"));
    EXPECT_EQ(compared("whole"), compared("cut"));
    for (const std::string& run : runs) {
      const auto weights = [&](const std::string& study) {
        return bytes_of(scratch.at("runs/" + study + "/" + run + "/weights/model.safetensors"));
      };
      EXPECT_TRUE(weights("whole") == weights("cut")) << run;
      EXPECT_FALSE(fs::exists(scratch.at("runs/cut/" + run + "/checkpoints"))) << run;
      EXPECT_FALSE(fs::exists(scratch.at("runs/cut/" + run + "/first-gradient.safetensors"))) << run;
    }
    EXPECT_TRUE(fs::exists(scratch.at("runs/cut/report.html")));
  }

  Scratch scratch;
};

// Every run is ended in its middle, in turn by a signal that asks and by one that does not.
TEST_F(Studies, EndedInTheMiddleOfEveryRunItComparesAsIfNothingHadHappened) {
  whole_study();
  std::size_t stopped = 0, killed = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    BegunOctet study(next_line(), scratch.folder(), scratch.at("err"));
    while (study.running() && !has_checkpoint(runs[i]) && !is_over(runs[i])) std::this_thread::sleep_for(100us);
    study.signal(i % 2 ? SIGKILL : i % 4 ? SIGINT : SIGTERM);
    const int code = study.end();
    if (ended_well(code)) break;
    const std::string said = bytes_of(scratch.at("err"));
    EXPECT_EQ(code, i % 2 ? -1 : int(ExitCode::interrupted)) << said;
    EXPECT_EQ(said, i % 2 ? "" : "octet: stopped by a signal; octet compare --resume runs/cut continues\n");
    ++(i % 2 ? killed : stopped);
  }
  EXPECT_TRUE(stopped >= 2 && killed >= 2) << stopped << " stopped, " << killed << " killed";
  const Ended ended = octet(next_line());
  EXPECT_TRUE(ended_well(ended.code)) << ended.err;
  EXPECT_TRUE(has(ended.out, "report: runs/cut/report.html")) << ended.out;
  expect_same();
}

TEST_F(Studies, KilledAtRandomMomentsItComparesAsIfNothingHadHappened) {
  const Ended whole = whole_study();
  const char* asked = std::getenv("OCTET_KILLS");
  const std::int64_t wanted = asked == nullptr ? 8 : std::strtoll(asked, nullptr, 10);
  std::int64_t kills = 0;
  for (std::uint64_t attempt = 0; kills < wanted; ++attempt) {
    ASSERT_LT(attempt, std::uint64_t(20 * wanted)) << kills << " kills";
    const auto moment = std::chrono::duration<double>(0.4 * whole.seconds * double(uniform(philox(11, attempt).w[0])));
    BegunOctet study(next_line(), scratch.folder());
    const auto begun = std::chrono::steady_clock::now();
    while (study.running() && std::chrono::steady_clock::now() - begun < moment) std::this_thread::sleep_for(1ms);
    study.signal(SIGKILL);
    if (study.end() == -1) {
      ++kills;
      continue;
    }
    expect_same();
    if (HasFailure()) return;
    fs::remove_all(scratch.at("runs/cut"));
  }
  EXPECT_TRUE(ended_well(octet(next_line()).code));
  expect_same();
}

TEST_F(Studies, StoppedWhileStepsAreTimedEndsThere) {
  BegunOctet study("compare run.toml --recipes current,rowwise,block128,mxfp8 --name cut --max-time 1h --set train.accumulate=2000",
                   scratch.folder(), scratch.at("err"));
  while (study.running() && !has(bytes_of(scratch.at("err")), "timing one step of each arm")) std::this_thread::sleep_for(1ms);
  const auto asked = std::chrono::steady_clock::now();
  study.signal(SIGTERM);
  EXPECT_EQ(study.end(), int(ExitCode::interrupted));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 2s) << "two steps of five recipes take longer";
  const std::string said = bytes_of(scratch.at("err"));
  EXPECT_TRUE(has(said, "octet: stopped by a signal while the arms were timed, before the first run; give the same command again\n"))
      << said;
  EXPECT_FALSE(fs::exists(scratch.at("runs/cut")));
}

TEST_F(Studies, FinishedItIsJudgedAgainWithoutItsDataset) {
  const Ended whole = whole_study();
  const std::string judged = bytes_of(scratch.at("runs/whole/compare.json"));
  for (const char* name : {"data", "runs/whole/compare.json", "runs/whole/report.html"}) fs::remove_all(scratch.at(name));
  const Ended again = octet("compare --quiet --resume runs/whole/");
  EXPECT_EQ(again.code, whole.code) << again.err;
  EXPECT_EQ(again.out, whole.out);
  EXPECT_EQ(bytes_of(scratch.at("runs/whole/compare.json")), judged);
  EXPECT_TRUE(fs::exists(scratch.at("runs/whole/report.html")));

  std::string facts = bytes_of(scratch.at("runs/whole/delayed-seed2/run.json"));
  facts.replace(facts.find("\"finished\""), 10, "\"diverged\"");
  scratch.write("runs/whole/delayed-seed2/run.json", facts);
  EXPECT_TRUE(ended_well(octet("compare --quiet --resume runs/whole").code)) << "one that diverged has nothing left to train either";
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/whole/compare.json")), "\"diverged\""));
}

TEST_F(Studies, WhoseBaselineDivergesEndsThereAlsoWhenItIsGoneOnWith) {
  const Ended ended = octet(begin + "cut --set optim.learning_rate=1e30 --set train.max_skipped=2 --set optim.max_grad_norm=0");
  for (const Ended& one : {ended, octet(go_on)}) {
    EXPECT_EQ(one.code, int(ExitCode::diverged)) << one.err;
    EXPECT_TRUE(has(bytes_of(scratch.at("runs/cut/report.html")), "Diverged"));
    EXPECT_TRUE(has(one.err, "run bf16-seed1, the baseline, diverged") && has(one.err, "runs/cut/bf16-seed1/metrics.jsonl")) << one.err;
  }
  EXPECT_FALSE(fs::exists(scratch.at("runs/cut/bf16-twin1-seed1")));
}

TEST_F(Studies, WarnsThatItKeepsTheNewestCheckpointAlone) {
  const Ended ended = octet("compare run.toml --steps 1 --recipes current --set checkpoint.keep=2 --set checkpoint.minutes=1");
  EXPECT_TRUE(has(ended.err, "`checkpoint.keep` has no effect: a comparison keeps the newest checkpoint alone\n")) << ended.err;
  EXPECT_FALSE(has(ended.err, "checkpoint.every") || has(ended.err, "checkpoint.minutes")) << ended.err;
}

TEST_F(Studies, ThatGoesOnIsNotGoneOnWithByAnother) {
  BegunOctet first(begin + "cut --steps 100000", scratch.folder());
  while (first.running() && !has_checkpoint(runs[0])) std::this_thread::sleep_for(1ms);
  const Ended second = octet(go_on);
  EXPECT_EQ(second.code, int(ExitCode::io)) << second.err;
  EXPECT_TRUE(has(second.err, "runs/cut belongs to a run that is still going, process ")) << second.err;
  first.signal(SIGTERM);
  EXPECT_EQ(first.end(), int(ExitCode::interrupted));
}

TEST_F(Studies, OfWhichARunsFilesAreDamagedSayHowToHaveThatRunAnew) {
  whole_study();
  const fs::path before = scratch.at("runs/whole"), after = scratch.at("runs/cut");
  fs::copy(before, after, fs::copy_options::recursive);
  scratch.write("runs/cut/delayed-seed2/run.json", "{");
  const Ended refused = octet(go_on);
  EXPECT_EQ(refused.code, int(ExitCode::data)) << refused.err;
  EXPECT_TRUE(has(refused.err, "or remove runs/cut/delayed-seed2, which --resume then trains again")) << refused.err;
  fs::remove_all(after / "delayed-seed2");
  const Ended without_gradient = octet(go_on);
  EXPECT_EQ(without_gradient.code, int(ExitCode::data)) << without_gradient.err;
  EXPECT_TRUE(has(without_gradient.err, "runs/cut/bf16-seed2/first-gradient.safetensors: there is no such file") &&
              has(without_gradient.err, "remove runs/cut/bf16-seed2: the baseline is then trained again"))
      << without_gradient.err;
  fs::remove_all(after / "bf16-seed2");
  EXPECT_TRUE(ended_well(octet(go_on).code));
  expect_same();
}

}  // namespace
}  // namespace octet
