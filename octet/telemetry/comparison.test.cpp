#include "octet/telemetry/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/telemetry/sample_run.test.hpp"

namespace octet::telemetry {
namespace {

RunRecord run_of(const std::string& recipe, std::int64_t seed, double eval_loss, double rate = 1000) {
  RunRecord run;
  run.facts.recipe = recipe, run.facts.seed = seed, run.facts.state = RunState::finished;
  run.end = EndEvent{.train_loss = eval_loss - 0.1, .eval_loss = eval_loss, .tokens_per_second = rate, .skipped = 1};
  return run;
}

TEST(Comparison, GapsArePairedBySeed) {
  const std::vector<RunRecord> runs{run_of("current", 1, 2.02, 500), run_of("current", 2, 4.02, 700), run_of("bf16", 1, 2),
                                    run_of("bf16", 2, 4)};
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.rows[0].arm, "bf16");
  EXPECT_EQ(c.rows[0].gap, 0);
  EXPECT_EQ(c.rows[0].verdict, Verdict::baseline);
  const ComparisonRow& row = c.rows[1];
  const double one = (2.02 - 2) / 2, other = (4.02 - 4) / 4;
  EXPECT_DOUBLE_EQ(row.gap, (one + other) / 2);
  EXPECT_NEAR(row.gap_deviation, (one - other) / std::sqrt(2), 1e-15);
  EXPECT_NEAR(row.gap_half_width, 12.7062047 * (one - other) / 2, 1e-8);
  EXPECT_DOUBLE_EQ(row.speed_ratio, 0.6);
  EXPECT_EQ(row.skipped, 2);
  EXPECT_EQ(row.verdict, Verdict::not_resolved) << "two seeds";
  EXPECT_TRUE(c.passes());
}

/// Three seeds of an arm with these final losses.
void add_seeds(std::vector<RunRecord>& runs, const std::string& arm, const std::vector<double>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    runs.push_back(run_of("current", std::int64_t(i) + 1, losses[i]));
    runs.back().facts.arm = arm;
  }
}

TEST(Comparison, OnlyAGapThatIsResolvedAndOverFails) {
  std::vector<RunRecord> runs;
  add_seeds(runs, "bf16", {2, 3, 4});
  add_seeds(runs, "near", {2.0002, 3.0002, 4.0006});
  add_seeds(runs, "noisy", {2.2, 2.9, 4.3});
  Comparison c = compare_runs(runs, "bf16", 0.005);
  EXPECT_EQ(find_row(c, "near")->verdict, Verdict::within);
  EXPECT_EQ(find_row(c, "noisy")->verdict, Verdict::not_resolved);
  EXPECT_TRUE(c.passes());
  add_seeds(runs, "far", {2.1, 3.15, 4.2});
  c = compare_runs(runs, "bf16", 0.005);
  EXPECT_EQ(find_row(c, "far")->verdict, Verdict::over);
  EXPECT_FALSE(c.passes());
}

TEST(Comparison, OneSeedResolvesNothingWhateverItsGap) {
  const Comparison c =
      compare_runs(std::vector<RunRecord>{run_of("bf16", 1, 2), run_of("global", 1, 2.1), run_of("mxfp8", 1, 1.9)}, "bf16", 0.005);
  for (const char* arm : {"global", "mxfp8"}) {
    EXPECT_EQ(find_row(c, arm)->verdict, Verdict::not_resolved);
    EXPECT_TRUE(std::isnan(find_row(c, arm)->gap_half_width));
  }
  EXPECT_TRUE(c.passes());
}

TEST(Comparison, TwinsAreMeasuredAndNeverJudged) {
  std::vector<RunRecord> runs;
  add_seeds(runs, "current", {2, 3, 4});
  add_seeds(runs, "bf16", {2, 3, 4});
  for (int twin : {2, 1})
    for (std::int64_t seed : {1, 2, 3}) {
      runs.push_back(run_of("current", seed, (1 + 1e-4 * twin) * double(seed + 1)));
      runs.back().facts.arm = "bf16", runs.back().facts.twin = twin;
    }
  runs.back().facts.state = RunState::diverged;
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  ASSERT_EQ(c.rows.size(), 4u);
  EXPECT_EQ(row_name(c.rows[0]), "bf16");
  EXPECT_EQ(row_name(c.rows[1]), "bf16 twin 2");
  EXPECT_EQ(row_name(c.rows[2]), "bf16 twin 1");
  EXPECT_NEAR(find_row(c, "bf16 twin 2")->gap, 2e-4, 1e-12);
  EXPECT_EQ(find_row(c, "current")->verdict, Verdict::within);
  EXPECT_TRUE(c.passes()) << "also when a twin diverged";
}

// Three seeds whose gaps agree by chance, beside twins that scatter by more: no arm is told apart from the baseline by less than rounding.
TEST(Comparison, AnIntervalIsAtLeastAsWideAsTheScatterOfTheTwins) {
  std::vector<RunRecord> runs;
  add_seeds(runs, "bf16", {2, 3, 4});
  add_seeds(runs, "current", {2 * 1.0023, 3 * 1.0024, 4 * 1.0022});
  const Comparison alone = compare_runs(runs, "bf16", 0.005);
  EXPECT_LT(find_row(alone, "current")->gap_half_width, 0.0003);
  EXPECT_EQ(find_row(alone, "current")->verdict, Verdict::within);
  const double twins[] = {0.0029, -0.0029, 0.0029};
  for (std::int64_t seed : {1, 2, 3}) {
    runs.push_back(run_of("current", seed, (1 + twins[seed - 1]) * double(seed + 1)));
    runs.back().facts.arm = "bf16", runs.back().facts.twin = 1;
  }
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  const ComparisonRow& row = *find_row(c, "current");
  EXPECT_NEAR(row.gap_half_width, 4.30265273 * 0.0029 / std::sqrt(3), 1e-8) << "t(0.975; 2)";
  EXPECT_NEAR(row.gap_deviation, 1e-4, 1e-9) << "the measured one";
  EXPECT_EQ(row.verdict, Verdict::not_resolved);
  EXPECT_NE(findings(c).find("No arm can be distinguished from bf16"), std::string::npos) << findings(c);
}

TEST(Comparison, AveragedWeightsAreComparedWhereBothRunsHaveThem) {
  std::vector<RunRecord> runs{run_of("bf16", 1, 2), run_of("current", 1, 3)};
  runs[0].end->average_loss = 1.5;
  EXPECT_DOUBLE_EQ(gap_of(runs[1], runs[0]), 0.5);
  runs[1].end->average_loss = 1.53;
  EXPECT_DOUBLE_EQ(gap_of(runs[1], runs[0]), (1.53 - 1.5) / 1.5);
  for (RunRecord& run : runs) run.end->average_loss = run.end->eval_loss = NAN;
  EXPECT_DOUBLE_EQ(gap_of(runs[1], runs[0]), (2.9 - 1.9) / 1.9);
}

TEST(Comparison, OneDivergedSeedIsNotAveragedAway) {
  std::vector<RunRecord> runs{run_of("bf16", 1, 2), run_of("bf16", 2, 2), run_of("delayed", 1, 2), run_of("delayed", 2, NAN)};
  runs[3].facts.state = RunState::diverged;
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  EXPECT_TRUE(std::isnan(c.rows[1].gap));
  EXPECT_EQ(c.rows[1].verdict, Verdict::diverged);
  EXPECT_FALSE(c.passes());
  EXPECT_EQ(c.rows[1].state, RunState::diverged);
  EXPECT_NE(table_text(c).find("diverged"), std::string::npos);
}

TEST(Comparison, AnUnfinishedRunIsJudgedByItsLastSteps) {
  RunRecord run;
  for (int i = 1; i <= 40; ++i) run.steps.push_back({.step = i, .loss = double(i), .tokens_per_second = double(i), .skipped = i == 3});
  EXPECT_EQ(final_train_loss(run), 39.5);
  EXPECT_TRUE(std::isnan(final_eval_loss(run)));
  EXPECT_EQ(median_tokens_per_second(run), 21);
  EXPECT_EQ(skipped_steps(run), 1);
}

TEST(Comparison, AMissingBaselineIsABrokenContract) {
  EXPECT_THROW(compare_runs(std::vector<RunRecord>{run_of("current", 1, 2)}, "bf16", 0), ContractError);
}

TEST(Comparison, ItsFileComesBackAsWritten) {
  const std::string path = std::filesystem::temp_directory_path() / format("octet-compare-{}.json", ::getpid());
  Comparison c = compare_runs(testing::sample_runs(2, {.layers = 3, .steps = 20}), "bf16", 0.005);
  c.runs = {"bf16-1", "bf16-2"};
  write_comparison(path, c);
  const std::string first = read_file(path, 1 << 20);
  EXPECT_EQ(table_text(read_comparison(path)), table_text(c));
  write_comparison(path, read_comparison(path));
  EXPECT_EQ(read_file(path, 1 << 20), first);
  for (const char* hostile : {"..", "a/b", "/etc", "", "."}) {
    c.runs = {hostile};
    write_comparison(path, c);
    EXPECT_THROW(read_comparison(path), DataError);
  }
  std::filesystem::remove(path);
}

TEST(Comparison, TheTableShowsEveryRecipeAndNoControlBytes) {
  Comparison c = compare_runs(testing::sample_runs(3, {.layers = 3, .steps = 50}), "bf16", 0.005);
  c.rows[1].arm = "\x1b[2Jdelayed";
  const std::string table = table_text(c);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  for (const char* word : {"bf16", "current", "rowwise", "block128", "mxfp8", "global", "eval loss", "grad cosine", "activations", "over",
                           "not resolved", "±"})
    EXPECT_NE(table.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace octet::telemetry
