#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/memory_use.hpp"
#include "octet/telemetry/run_record.hpp"

namespace octet {

/// One recipe of a comparison, over its seeds. A number that no run gave is NaN.
struct ComparisonRow {
  std::string recipe{};
  int seeds = 0;
  double train_loss = 0, eval_loss = 0;  // means over seeds of the final ones
  double gap = 0;                        // mean over seeds of (loss - baseline's loss of that seed) / baseline's; of eval, else of train
  double gap_spread = 0;                 // half the range of that over seeds; NaN for one seed
  double gradient_cosine = 0;            // of the first step's gradient with the baseline's, mean over seeds
  double tokens_per_second = 0;          // median over steps, mean over seeds
  double speed_ratio = 0;                // to the baseline's
  MemoryUse memory;                      // of the first seed
  std::int64_t skipped = 0;              // steps, all seeds together
  RunState state = RunState::finished;   // the worst of the seeds
  bool within = true;                    // gap <= max(tolerance, seed_spread); false where the gap is unknown
};

/// Recipes trained from the same initial weights on the same data, beside a baseline.
struct Comparison {
  std::string baseline{};
  double tolerance = 0;    // of the gap, as a fraction: 0.005 is 0.5 %
  double seed_spread = 0;  // (largest - smallest) / mean of the baseline's final loss over seeds; 0 for one seed
  std::vector<ComparisonRow> rows{};
  std::vector<std::string> runs{};  // folders of the runs, names within the comparison's own folder

  bool all_within() const;
};

/// A recipe's line in every table and chart.
const ComparisonRow* find_row(const Comparison&, std::string_view recipe);

/// Compares `runs`, in the order in which their recipes first appear, the baseline first.
/// Throws ContractError when none of them has the baseline's recipe.
Comparison compare_runs(std::span<const RunRecord> runs, const std::string& baseline, double tolerance);

/// The mean loss of the last steps (a twentieth of them, at least one), NaN where there are none; what EndEvent says where there is one.
double final_train_loss(const RunRecord&);
double final_eval_loss(const RunRecord&);
/// Median over the steps; what EndEvent says where there is one.
double median_tokens_per_second(const RunRecord&);
std::int64_t skipped_steps(const RunRecord&);

/// The file `compare.json`, replaced atomically.
void write_comparison(const std::string& path, const Comparison&);
/// Throws IoError, DataError. A run's folder must be a plain name, so that a file from elsewhere reads nothing outside its own folder.
Comparison read_comparison(const std::string& path);

/// The table for a terminal or a log: one line a recipe, then the peak memory by category.
std::string table_text(const Comparison&);

}  // namespace octet
