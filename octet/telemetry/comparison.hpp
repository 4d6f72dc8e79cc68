#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/memory_use.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/telemetry/verdict.hpp"

namespace octet::telemetry {

/// One arm of a comparison, or one twin of its baseline, over its seeds. A number without a run is NaN.
struct ComparisonRow {
  std::string arm{};     // its name
  std::string recipe{};  // of its linear layers
  int twin = 0;          // number of the twin; 0: the arm itself
  int seeds = 0;
  double train_loss = 0, eval_loss = 0;  // means over seeds of the final ones
  double average_loss = 0;               // the same of the averaged weights
  double gap = 0;                        // mean over seeds of gap_of() to the baseline of the same seed
  double gap_deviation = 0;              // standard deviation of one seed's gap; NaN of fewer than 2 seeds
  double gap_half_width = 0;     // the gap's interval is gap +- this, as judged (Judged::half_width): by the gaps' or the twins' deviation
  double gradient_cosine = 0;    // of the first step's gradient with the baseline's, mean over seeds
  double tokens_per_second = 0;  // median over steps, mean over seeds
  double speed_ratio = 0;        // to the baseline's
  MemoryUse memory;              // of the first seed
  double eight_bit_share = NAN;  // RunFacts'
  std::int64_t skipped = 0;      // steps, all seeds together
  RunState state = RunState::finished;  // the worst of the seeds
  Verdict verdict = Verdict::baseline;  // a twin's is `baseline`
};

/// Arms trained from the same initial weights on the same data, with a baseline and its twins.
struct Comparison {
  std::string baseline{};             // an arm's name
  double tolerance = 0;               // of the gap, as a fraction: 0.005 is 0.5 %
  double confidence = 0.95;           // of all verdicts together
  std::vector<ComparisonRow> rows{};  // the baseline, its twins, the other arms
  std::vector<std::string> runs{};    // folders of the runs, names within the comparison's own folder

  /// Whether no arm is over the tolerance and none diverged. `not_resolved` passes.
  bool passes() const;
};

/// "current", and of a twin "bf16 twin 1": a row's name in every table and chart.
std::string row_name(const std::string& arm, int twin);
std::string row_name(const ComparisonRow&);
/// The arm of a run; outside a comparison, its recipe.
const std::string& arm_of(const RunFacts&);

/// The row of that name; null where there is none.
const ComparisonRow* find_row(const Comparison&, std::string_view row_name);

/// Compares `runs`, in the order in which their arms first appear, the baseline first, then its twins. Twins are measured, not judged; an
/// arm is judged as if its gaps scattered at least like theirs. Throws ContractError when none of them is the baseline's.
Comparison compare_runs(std::span<const RunRecord> runs, const std::string& baseline, double tolerance, double confidence = 0.95);

/// (loss - other's) / other's, final losses: of the averaged weights where both have that, else of the weights, else of training. NaN if
/// `other` has a better one of these and `run` does not.
double gap_of(const RunRecord& run, const RunRecord& other);

/// The mean loss of the last steps (a twentieth of them, at least one), NaN if there are none. EndEvent's value, if there is one.
double final_train_loss(const RunRecord&);
double final_eval_loss(const RunRecord&);
/// The same of the averaged weights.
double final_average_loss(const RunRecord&);
/// Median over the steps. EndEvent's value, if there is one.
double median_tokens_per_second(const RunRecord&);
std::int64_t skipped_steps(const RunRecord&);

/// The file `compare.json`, replaced atomically.
void write_comparison(const std::string& path, const Comparison&);
/// Throws IoError, DataError. A run's folder must be a plain name, so that a file from elsewhere cannot read outside its folder.
Comparison read_comparison(const std::string& path);

/// The table for a terminal or a log: one line per row, then the peak memory by category.
std::string table_text(const Comparison&);

}  // namespace octet::telemetry
