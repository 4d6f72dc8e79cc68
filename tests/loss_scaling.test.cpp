#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/error.hpp"
#include "tests/testing/octet.hpp"

// A run of the program whose loss scale begins too high: what it says, stores and shows.

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::bytes_of, testing::Ended, testing::has, testing::Scratch;

class LossScaling : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_dataset(scratch);
    scratch.write("run.toml", "threads = 1\n" + testing::tiny_config("steps = 20\nbatch = 2\n"));
  }
  Ended octet(const std::string& line) const { return testing::run_octet(line, scratch.folder()); }
  std::string board_of(const std::string& run) const {
    for (const auto& entry : fs::directory_iterator(scratch.at(run)))
      if (entry.path().filename().string().starts_with("events.")) return bytes_of(entry.path().string());
    return "";
  }
  Scratch scratch;
};

TEST_F(LossScaling, OverflowsLowerTheScaleUntilStepsAreGoodAndAreExplained) {
  const Ended ended = octet(
      "train run.toml --name run --set recipe.name=fp16 --set loss_scale.start=16777216 --set loss_scale.growth_steps=6 --set "
      "train.max_skipped=1");
  ASSERT_EQ(ended.code, 0) << ended.err << "\nsteps that lower the scale count for no limit";
  const std::string events = bytes_of(scratch.at("runs/run/metrics.jsonl"));
  EXPECT_TRUE(has(events, "is not finite; weights unchanged; overflow, loss scale 16777216 -> 8388608")) << events;
  EXPECT_TRUE(has(events, "\"kind\":\"loss_scale\"") && has(events, "after step 1 loss scale 16777216 -> 8388608")) << events;
  EXPECT_TRUE(has(events, "\"loss_scale\":16777216") && has(events, "\"skipped\":false")) << events;
  EXPECT_TRUE(has(board_of("runs/run"), "optimizer/loss_scale"));
  const std::string facts = bytes_of(scratch.at("runs/run/run.json"));
  EXPECT_TRUE(has(facts, "from 16777216 on: times 0.5 after a skipped step, times 2 after 6 good ones")) << facts;
  ASSERT_EQ(octet("report runs/run").code, 0);
  EXPECT_TRUE(has(bytes_of(scratch.at("runs/run/report.html")), "Loss scale"));
}

TEST_F(LossScaling, OverflowsAtTheSmallestScaleCountAsSkippedSteps) {
  const Ended ended = octet(
      "train run.toml --quiet --name run --set recipe.name=fp16 --set loss_scale.start=16777216 --set loss_scale.smallest=8388608 --set "
      "train.max_skipped=3");
  EXPECT_EQ(ended.code, int(ExitCode::diverged)) << ended.err;
  const std::string events = bytes_of(scratch.at("runs/run/metrics.jsonl"));
  EXPECT_TRUE(has(events, "\"step\":4") && !has(events, "\"step\":5,")) << "one that lowered the scale, and three\n" << events;
  EXPECT_TRUE(has(events, "the loss scale stays at 8388608")) << events;
}

TEST_F(LossScaling, IsShownInNoRunWithoutIt) {
  ASSERT_EQ(octet("train run.toml --quiet --name run --steps 3").code, 0);
  EXPECT_FALSE(has(bytes_of(scratch.at("runs/run/metrics.jsonl")), "loss_scale"));
  EXPECT_FALSE(has(board_of("runs/run"), "loss_scale"));
  const Ended ended = octet("train run.toml --quiet --name idle --steps 3 --set loss_scale.start=4");
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(has(ended.err, "`loss_scale.start` has no effect: loss_scale.mode is \"auto\"")) << ended.err;
}

TEST_F(LossScaling, RefusesNumbersThatAreNoPowersOfTwo) {
  const Ended ended = octet("train run.toml --quiet --set recipe.name=fp16 --set loss_scale.start=1000");
  EXPECT_NE(ended.code, 0);
  EXPECT_TRUE(has(ended.err, "loss_scale.start = 1000: must be a power of two")) << ended.err;
}

}  // namespace
}  // namespace octet
