#include "octet/telemetry/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/telemetry/sample_run.test.hpp"

namespace octet {
namespace {

RunRecord run_of(const std::string& recipe, std::int64_t seed, double eval_loss, double rate = 1000) {
  RunRecord run;
  run.facts.recipe = recipe, run.facts.seed = seed, run.facts.state = RunState::finished;
  run.end = EndEvent{.train_loss = eval_loss - 0.1, .eval_loss = eval_loss, .tokens_per_second = rate, .skipped = 1};
  return run;
}

TEST(Comparison, gaps_are_paired_by_seed) {
  const std::vector<RunRecord> runs{run_of("current", 1, 2.02, 500), run_of("current", 2, 4.02, 700), run_of("bf16", 1, 2),
                                    run_of("bf16", 2, 4)};
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.rows[0].recipe, "bf16");
  EXPECT_EQ(c.rows[0].gap, 0);
  const ComparisonRow& row = c.rows[1];
  EXPECT_DOUBLE_EQ(row.gap, ((2.02 - 2) / 2 + (4.02 - 4) / 4) / 2);
  EXPECT_NEAR(row.gap_spread, ((2.02 - 2) / 2 - (4.02 - 4) / 4) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(row.speed_ratio, 0.6);
  EXPECT_EQ(row.skipped, 2);
  EXPECT_DOUBLE_EQ(c.seed_spread, (4.0 - 2.0) / 3.0);
  EXPECT_TRUE(c.all_within());  // the spread over seeds is larger than the gap
}

TEST(Comparison, a_gap_beyond_the_tolerance_is_told) {
  const Comparison c =
      compare_runs(std::vector<RunRecord>{run_of("bf16", 1, 2), run_of("global", 1, 2.1), run_of("mxfp8", 1, 1.9)}, "bf16", 0.005);
  EXPECT_FALSE(find_row(c, "global")->within);
  EXPECT_TRUE(find_row(c, "mxfp8")->within);
  EXPECT_TRUE(std::isnan(find_row(c, "global")->gap_spread));
  EXPECT_FALSE(c.all_within());
}

TEST(Comparison, one_diverged_seed_is_not_averaged_away) {
  std::vector<RunRecord> runs{run_of("bf16", 1, 2), run_of("bf16", 2, 2), run_of("delayed", 1, 2), run_of("delayed", 2, NAN)};
  runs[3].facts.state = RunState::diverged;
  const Comparison c = compare_runs(runs, "bf16", 0.005);
  EXPECT_TRUE(std::isnan(c.rows[1].gap));
  EXPECT_FALSE(c.rows[1].within);
  EXPECT_EQ(c.rows[1].state, RunState::diverged);
  EXPECT_NE(table_text(c).find("diverged"), std::string::npos);
}

TEST(Comparison, an_unfinished_run_is_judged_by_its_last_steps) {
  RunRecord run;
  for (int i = 1; i <= 40; ++i) run.steps.push_back({.step = i, .loss = double(i), .tokens_per_second = double(i), .skipped = i == 3});
  EXPECT_EQ(final_train_loss(run), 39.5);
  EXPECT_TRUE(std::isnan(final_eval_loss(run)));
  EXPECT_EQ(median_tokens_per_second(run), 21);
  EXPECT_EQ(skipped_steps(run), 1);
}

TEST(Comparison, a_missing_baseline_is_a_broken_contract) {
  EXPECT_THROW(compare_runs(std::vector<RunRecord>{run_of("current", 1, 2)}, "bf16", 0), ContractError);
}

TEST(Comparison, its_file_comes_back_as_written) {
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

TEST(Comparison, the_table_shows_every_recipe_and_no_control_bytes) {
  Comparison c = compare_runs(testing::sample_runs(3, {.layers = 3, .steps = 50}), "bf16", 0.005);
  c.rows[1].recipe = "\x1b[2Jdelayed";
  const std::string table = table_text(c);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  for (const char* word :
       {"bf16", "current", "rowwise", "block128", "mxfp8", "global", "eval loss", "grad cosine", "activations", "OVER", "±"})
    EXPECT_NE(table.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace octet
