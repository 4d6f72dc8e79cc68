#include "octet/telemetry/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"

namespace octet {
namespace {

/// Sum, extremes and count of the finite ones of a few numbers.
struct Spread {
  double sum = 0, low = INFINITY, high = -INFINITY;
  int n = 0;
  void add(double x) {
    if (!std::isfinite(x)) return;
    sum += x, low = std::min(low, x), high = std::max(high, x), ++n;
  }
  double mean() const { return n ? sum / n : NAN; }
  double half_range() const { return n > 1 ? (high - low) / 2 : NAN; }
};

double final_loss(const RunRecord& run) {
  const double eval = final_eval_loss(run);
  return std::isfinite(eval) ? eval : final_train_loss(run);
}

const RunRecord* of_seed(std::span<const RunRecord* const> runs, std::int64_t seed) {
  for (const RunRecord* run : runs)
    if (run->facts.seed == seed) return run;
  return nullptr;
}

/// (loss - other) / other, of the evaluation where both have one.
double gap_of(const RunRecord& run, const RunRecord& other) {
  const double eval = final_eval_loss(run), other_eval = final_eval_loss(other);
  if (std::isfinite(eval) && std::isfinite(other_eval)) return (eval - other_eval) / other_eval;
  if (std::isfinite(other_eval)) return NAN;  // the baseline could evaluate and this run could not
  return (final_train_loss(run) - final_train_loss(other)) / final_train_loss(other);
}

int badness(RunState s) { return s == RunState::diverged ? 3 : s == RunState::stopped ? 2 : s == RunState::running ? 1 : 0; }

ComparisonRow row_of(std::span<const RunRecord* const> runs, std::span<const RunRecord* const> baselines) {
  Spread train, eval, gap, cosine, speed, baseline_speed;
  ComparisonRow row;
  row.recipe = runs[0]->facts.recipe;
  row.seeds = int(runs.size());
  row.memory = runs[0]->facts.memory;
  bool complete = true;
  for (const RunRecord* run : runs) {
    train.add(final_train_loss(*run)), eval.add(final_eval_loss(*run)), speed.add(median_tokens_per_second(*run));
    cosine.add(run->facts.gradient_cosine);
    row.skipped += skipped_steps(*run);
    if (badness(run->facts.state) > badness(row.state)) row.state = run->facts.state;
    const RunRecord* baseline = of_seed(baselines, run->facts.seed);
    const double its_gap = baseline ? gap_of(*run, *baseline) : NAN;
    gap.add(its_gap);
    complete = complete && std::isfinite(its_gap);
  }
  for (const RunRecord* run : baselines) baseline_speed.add(median_tokens_per_second(*run));
  row.train_loss = train.mean(), row.eval_loss = eval.mean(), row.gradient_cosine = cosine.mean();
  // A seed without a gap (it diverged) is the worst of all: a mean over the others would hide it.
  row.gap = complete ? gap.mean() : NAN, row.gap_spread = complete ? gap.half_range() : NAN;
  row.tokens_per_second = speed.mean(), row.speed_ratio = speed.mean() / baseline_speed.mean();
  return row;
}

}  // namespace

bool Comparison::all_within() const {
  return std::all_of(rows.begin(), rows.end(), [](const ComparisonRow& r) { return r.within; });
}

const ComparisonRow* find_row(const Comparison& comparison, std::string_view recipe) {
  for (const auto& row : comparison.rows)
    if (row.recipe == recipe) return &row;
  return nullptr;
}

double final_train_loss(const RunRecord& run) {
  if (run.end) return run.end->train_loss;
  if (run.steps.empty()) return NAN;
  const std::size_t n = std::max<std::size_t>(1, run.steps.size() / 20);
  double sum = 0;
  for (std::size_t i = run.steps.size() - n; i < run.steps.size(); ++i) sum += run.steps[i].loss;
  return sum / double(n);
}

double final_eval_loss(const RunRecord& run) {
  if (run.end) return run.end->eval_loss;
  return run.evals.empty() ? NAN : run.evals.back().loss;
}

double median_tokens_per_second(const RunRecord& run) {
  if (run.end) return run.end->tokens_per_second;
  std::vector<double> rates;
  for (const auto& s : run.steps)
    if (std::isfinite(s.tokens_per_second)) rates.push_back(s.tokens_per_second);
  if (rates.empty()) return NAN;
  std::nth_element(rates.begin(), rates.begin() + std::ptrdiff_t(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

std::int64_t skipped_steps(const RunRecord& run) {
  if (run.end) return run.end->skipped;
  return std::count_if(run.steps.begin(), run.steps.end(), [](const StepEvent& s) { return s.skipped; });
}

Comparison compare_runs(std::span<const RunRecord> runs, const std::string& baseline, double tolerance) {
  std::vector<std::vector<const RunRecord*>> groups;  // one a recipe
  for (const RunRecord& run : runs) {
    const auto same = [&](const auto& group) { return group[0]->facts.recipe == run.facts.recipe; };
    const auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end())
      groups.push_back({&run});
    else
      group->push_back(&run);
  }
  const auto first = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group[0]->facts.recipe == baseline; });
  check(first != groups.end(), "compare_runs: no run has the baseline's recipe '{}'", baseline);
  std::rotate(groups.begin(), first, first + 1);

  Comparison comparison{.baseline = baseline, .tolerance = tolerance};
  Spread seeds;
  for (const RunRecord* run : groups[0]) seeds.add(final_loss(*run));
  comparison.seed_spread = seeds.n > 1 ? (seeds.high - seeds.low) / seeds.mean() : 0;
  for (const auto& group : groups) {
    comparison.rows.push_back(row_of(group, groups[0]));
    ComparisonRow& row = comparison.rows.back();
    row.within = row.gap <= std::max(tolerance, comparison.seed_spread);
  }
  return comparison;
}

}  // namespace octet
