#include "octet/telemetry/report/selection.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/report/well_formed.test.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::telemetry {
namespace {
namespace fs = std::filesystem;
using testing::bytes_of, testing::has, testing::Scratch;

const testing::SampleSize small{.layers = 3, .steps = 20, .health_every = 5, .eval_every = 10};

/// The folder of a run of recipe number `recipe`, with another name than the recipe's where `name` gives one.
std::string sample(const Scratch& scratch, const std::string& folder, std::size_t recipe, const std::string& name = "") {
  RunRecord run = testing::sample_run(testing::sample_recipes()[recipe], 1, small);
  if (!name.empty()) run.facts.name = name;
  fs::create_directories(scratch.at(folder));
  testing::write_sample(scratch.at(folder), run);
  return scratch.at(folder);
}

std::vector<std::string> names(const Selection& selection) {
  std::vector<std::string> out;
  for (const RunRecord& run : selection.runs) out.push_back(run.facts.name);
  return out;
}

std::string page(const Selection& selection) {
  const std::string html = report_html(selection.runs, selection.comparison ? &*selection.comparison : nullptr);
  const auto from = html.find("<body>"), to = html.find("</html>");
  EXPECT_EQ(report::WellFormed::fault(html.substr(from, to - from)), "");
  return html;
}

TEST(Selection, ARunNamedTwiceByWhateverPathCountsOnce) {
  const Scratch scratch;
  const std::string a = sample(scratch, "a", 0), b = sample(scratch, "b", 1);
  fs::create_directory_symlink(a, scratch.at("link"));
  EXPECT_EQ(names(select_runs(std::vector{a, b, a + "/", scratch.at("b/../a"), scratch.at("link"), scratch.folder()})),
            (std::vector<std::string>{"bf16-1", "delayed-1"}));
}

TEST(Selection, ARunCountsHoweverFarItCame) {
  const Scratch scratch;
  const std::string fresh = sample(scratch, "fresh", 1), bare = sample(scratch, "bare", 2), torn = sample(scratch, "torn", 3),
                    whole = sample(scratch, "whole", 0);
  RunFacts facts = read_run_facts(torn + "/run.json");
  facts.state = RunState::running;
  for (const std::string& folder : {fresh, bare, torn}) write_run_facts(folder + "/run.json", facts);
  fs::remove(fresh + "/metrics.jsonl");
  fs::resize_file(bare + "/metrics.jsonl", 0);
  fs::resize_file(torn + "/metrics.jsonl", 1000);
  for (const std::string& folder : {fresh, bare, torn, whole})
    EXPECT_TRUE(has(page(select_runs(std::vector{folder})), "Summary")) << folder;
  const Selection all = select_runs(std::vector{fresh, bare, torn, whole});
  ASSERT_EQ(all.runs.size(), 4u);
  EXPECT_TRUE(all.runs[2].torn);
  const std::string html = page(all);
  EXPECT_TRUE(has(html, "0 of 20") && has(html, "20 of 20") && has(html, "unfinished") && has(html, "finished"));
}

TEST(Selection, AFolderOfRunsStandsForThemAlsoWhenAComparisonHasNotEnded) {
  const Scratch scratch;
  for (std::size_t i : {0, 1, 2}) sample(scratch, "runs/compare/" + testing::sample_recipes()[i].name, i);
  sample(scratch, "runs/alone", 3);
  fs::create_directories(scratch.at("runs/alone-2"));  // a run that was killed before it wrote anything
  const Selection compared = select_runs(std::vector{scratch.at("runs/compare")});
  EXPECT_EQ(names(compared), (std::vector<std::string>{"bf16-1", "current-1", "delayed-1"}));
  EXPECT_FALSE(compared.comparison);
  EXPECT_EQ(names(select_runs(std::vector{scratch.at("runs")})),
            (std::vector<std::string>{"rowwise-1", "bf16-1", "current-1", "delayed-1"}));
  EXPECT_THROW(select_runs(std::vector{scratch.at("runs"), scratch.at("runs/alone-2")}), ConfigError);
  EXPECT_THROW(select_runs(std::vector{scratch.at("nowhere")}), ConfigError);
}

TEST(Selection, AFinishedComparisonIsOneOnlyWhenNothingElseIsNamed) {
  const Scratch scratch;
  std::vector<RunRecord> runs;
  for (std::size_t i : {0, 1}) runs.push_back(read_run(sample(scratch, "compare/" + testing::sample_recipes()[i].name, i)));
  Comparison comparison = compare_runs(runs, "bf16", 0.005);
  comparison.runs = {"bf16", "delayed"};
  write_comparison(scratch.at("compare/compare.json"), comparison);
  const std::string other = sample(scratch, "other", 2);
  EXPECT_TRUE(select_runs(std::vector{scratch.at("compare")}).comparison);
  const Selection more = select_runs(std::vector{scratch.at("compare"), other});
  EXPECT_FALSE(more.comparison);
  EXPECT_EQ(more.runs.size(), 3u);
}

TEST(Selection, RunsOfOneNameAreToldApartByTheirFolders) {
  const Scratch scratch;
  const std::string a = sample(scratch, "runs/bf16", 0, "bf16"), b = sample(scratch, "runs/bf16-2", 0, "bf16"),
                    c = sample(scratch, "elsewhere/x", 1, "x");
  EXPECT_EQ(names(select_runs(std::vector{a, b, c})), (std::vector<std::string>{"bf16", "bf16-2", "x"}));
  const std::string d = sample(scratch, "elsewhere/bf16", 0, "bf16");
  EXPECT_EQ(names(select_runs(std::vector{a, b, d})), (std::vector<std::string>{a, "bf16-2", d}));
}

}  // namespace
}  // namespace octet::telemetry
