#include "octet/train/study/idle_options.hpp"

#include <gtest/gtest.h>

namespace octet::train {
namespace {

/// The warnings of a comparison of these arms whose runs share `keys`.
std::vector<std::string> warnings(std::vector<std::string> recipes, std::vector<std::string> arms, const std::vector<std::string>& keys,
                                  const std::string& baseline = "bf16") {
  StudyConfig study;
  config::Origins origins;
  for (const std::string& key : keys) config::apply_override(study.run, key, origins);
  study.compare.recipes = std::move(recipes), study.compare.arms = std::move(arms), study.compare.baseline = baseline;
  return idle_options(study, {}, origins);
}
using Lines = std::vector<std::string>;

TEST(IdleOptions, OfAComparisonAreThoseThatNoArmReads) {
  EXPECT_EQ(warnings({"current", "delayed"}, {}, {"recipe.history=16", "recipe.first=1", "recipe.format=e4m3"}), Lines{});
  EXPECT_EQ(warnings({"current"}, {}, {"recipe.history=16", "checkpoint.keep=2"}),
            (Lines{"--set: `recipe.history` has no effect: no history is kept under bf16, current",
                   "--set: `checkpoint.keep` has no effect: a comparison keeps the newest checkpoint alone"}));
  EXPECT_EQ(warnings({}, {"long: train.steps=9"}, {"train.tokens=500", "optim.schedule.decay=0.1"}),
            Lines{"--set: `optim.schedule.decay` has no effect: only optim.schedule.kind = \"wsd\" reads it"})
      << "the baseline trains on train.tokens";
}

TEST(IdleOptions, OfArmsWithKeysOfTheirOwnCountInEachArmAsItIs) {
  const Lines named = {"--set: `recipe.name` has no effect: every arm sets its own"};
  EXPECT_EQ(warnings({"delayed"}, {}, {"recipe.name=current"}), named);
  EXPECT_EQ(warnings({}, {"fast: optim.learning_rate=1e-2"}, {"recipe.name=current"}, "bf16"), Lines{}) << "fast trains in it";
  EXPECT_EQ(warnings({}, {"a: optim.learning_rate=1e-2", "b: optim.learning_rate=1e-3"}, {"recipe.name=current"}, "a"), Lines{});
  EXPECT_EQ(warnings({}, {"a: optim.schedule.kind=wsd"}, {"optim.schedule.decay=0.1"}), Lines{});
  EXPECT_EQ(warnings({}, {"a: optim.schedule.decay=0.5"}, {"optim.schedule.decay=0.1"}),
            (Lines{"--set: `optim.schedule.decay` has no effect: only optim.schedule.kind = \"wsd\" reads it; the other arms set their own",
                   "--arm a: `optim.schedule.decay` has no effect: only optim.schedule.kind = \"wsd\" reads it"}));
}

}  // namespace
}  // namespace octet::train
