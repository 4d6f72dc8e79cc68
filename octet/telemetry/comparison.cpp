#include "octet/telemetry/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/median.hpp"

namespace octet::telemetry {
namespace {

/// Of the finite ones of a few numbers.
struct Mean {
  double sum = 0;
  int n = 0;
  void add(double x) {
    if (std::isfinite(x)) sum += x, ++n;
  }
  double value() const { return n ? sum / n : NAN; }
};

const RunRecord* of_seed(std::span<const RunRecord* const> runs, std::int64_t seed) {
  for (const RunRecord* run : runs)
    if (run->facts.seed == seed) return run;
  return nullptr;
}

int badness(RunState s) { return s == RunState::diverged ? 3 : s == RunState::stopped ? 2 : s == RunState::running ? 1 : 0; }

using Group = std::vector<const RunRecord*>;  // the seeds of an arm or of a twin

/// The row of a group, not judged yet, and its gaps, one for each seed.
struct Measured {
  ComparisonRow row;
  std::vector<double> gaps;
};

Measured measure(const Group& runs, const Group& baselines) {
  Mean train, eval, average, cosine, speed, baseline_speed;
  Measured out;
  ComparisonRow& row = out.row;
  row.arm = arm_of(runs[0]->facts), row.recipe = runs[0]->facts.recipe, row.twin = runs[0]->facts.twin;
  row.seeds = int(runs.size());
  row.memory = runs[0]->facts.memory, row.eight_bit_share = runs[0]->facts.eight_bit_share;
  for (const RunRecord* run : runs) {
    train.add(final_train_loss(*run)), eval.add(final_eval_loss(*run)), average.add(final_average_loss(*run));
    speed.add(median_tokens_per_second(*run)), cosine.add(run->facts.gradient_cosine);
    row.skipped += skipped_steps(*run);
    if (badness(run->facts.state) > badness(row.state)) row.state = run->facts.state;
    const RunRecord* baseline = of_seed(baselines, run->facts.seed);
    out.gaps.push_back(baseline ? gap_of(*run, *baseline) : NAN);
  }
  for (const RunRecord* run : baselines) baseline_speed.add(median_tokens_per_second(*run));
  row.train_loss = train.value(), row.eval_loss = eval.value(), row.average_loss = average.value(), row.gradient_cosine = cosine.value();
  row.tokens_per_second = speed.value(), row.speed_ratio = speed.value() / baseline_speed.value();
  return out;
}

/// A diverged seed has no gap; a mean over the others would hide it.
PairedGap gap_of_all(const Measured& m) {
  const PairedGap gap = paired_gap(m.gaps);
  return gap.pairs == int(m.gaps.size()) ? gap : PairedGap{0, NAN, NAN};
}

std::vector<Group> grouped_runs(std::span<const RunRecord> runs, const std::string& baseline) {
  std::vector<Group> groups;
  const auto same = [](const RunFacts& a, const RunFacts& b) { return arm_of(a) == arm_of(b) && a.twin == b.twin; };
  for (const RunRecord& run : runs) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return same(g[0]->facts, run.facts); });
    if (group == groups.end()) groups.push_back({&run});
    else group->push_back(&run);
  }
  const auto rank = [&](const Group& g) { return arm_of(g[0]->facts) != baseline ? 2 : g[0]->facts.twin > 0 ? 1 : 0; };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) { return rank(a) < rank(b); });
  check(!groups.empty() && rank(groups[0]) == 0, "compare_runs: no run is of the baseline '{}'", baseline);
  return groups;
}

/// The root mean square of the gaps of all twins, whose true gap is 0: the deviation of a pair that differs by rounding alone. 0 of none.
double deviation_of_twins(const Comparison& c, const std::vector<Measured>& all) {
  double squares = 0;
  int n = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const double gap : all[i].gaps)
      if (c.rows[i].twin > 0 && std::isfinite(gap)) squares += gap * gap, ++n;
  return n > 0 ? std::sqrt(squares / n) : 0;
}

/// Gives each row its gap and interval, and judges the arms. The gaps of few seeds can be close to each other by chance, so an arm's
/// interval is at least that of gaps that scatter like the twins'.
void judge_rows(Comparison& c, const std::vector<Measured>& all) {
  const double least = deviation_of_twins(c, all);
  std::vector<PairedGap> judged;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ComparisonRow& row = c.rows[i];
    PairedGap gap = gap_of_all(all[i]);
    row.gap = gap.mean, row.gap_deviation = gap.deviation, row.gap_half_width = half_width(gap, c.confidence);
    if (row.arm == c.baseline) continue;
    if (gap.pairs > 1) gap.deviation = std::max(gap.deviation, least);
    row.verdict = row.state == RunState::diverged ? Verdict::diverged : Verdict::not_resolved;
    if (row.verdict == Verdict::not_resolved) judged.push_back(gap), places.push_back(i);
  }
  const std::vector<Judged> verdicts = judge(judged, c.tolerance, c.confidence);
  for (std::size_t i = 0; i < places.size(); ++i)
    c.rows[places[i]].verdict = verdicts[i].verdict, c.rows[places[i]].gap_half_width = verdicts[i].half_width;
}

}  // namespace

bool Comparison::passes() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const ComparisonRow& r) { return r.verdict == Verdict::over || r.verdict == Verdict::diverged; });
}

std::string row_name(const std::string& arm, int twin) { return twin == 0 ? arm : format("{} twin {}", arm, twin); }
std::string row_name(const ComparisonRow& row) { return row_name(row.arm, row.twin); }
const std::string& arm_of(const RunFacts& facts) { return facts.arm.empty() ? facts.recipe : facts.arm; }

const ComparisonRow* find_row(const Comparison& comparison, std::string_view name) {
  for (const auto& row : comparison.rows)
    if (row_name(row) == name) return &row;
  return nullptr;
}

double gap_of(const RunRecord& run, const RunRecord& other) {
  for (const auto& loss : {final_average_loss, final_eval_loss}) {
    const double own = loss(run), others = loss(other);
    if (std::isfinite(own) && std::isfinite(others)) return (own - others) / others;
  }
  if (std::isfinite(final_eval_loss(other))) return NAN;  // the other could evaluate and this run could not
  return (final_train_loss(run) - final_train_loss(other)) / final_train_loss(other);
}

double final_train_loss(const RunRecord& run) {
  if (run.end) return run.end->train_loss;
  if (run.steps.empty()) return NAN;
  constexpr std::size_t last_part = 20;  // the last twentieth of the steps: averages the noise of batches, and is short enough to be final
  const std::size_t n = std::max<std::size_t>(1, run.steps.size() / last_part);
  double sum = 0;
  for (std::size_t i = run.steps.size() - n; i < run.steps.size(); ++i) sum += run.steps[i].loss;
  return sum / double(n);
}

double final_eval_loss(const RunRecord& run) {
  if (run.end) return run.end->eval_loss;
  return run.evals.empty() ? NAN : run.evals.back().loss;
}

double final_average_loss(const RunRecord& run) {
  if (run.end) return run.end->average_loss;
  return run.evals.empty() ? NAN : run.evals.back().average_loss;
}

double median_tokens_per_second(const RunRecord& run) {
  if (run.end) return run.end->tokens_per_second;
  std::vector<double> rates;
  for (const auto& s : run.steps)
    if (std::isfinite(s.tokens_per_second)) rates.push_back(s.tokens_per_second);
  return median_of(std::move(rates));
}

std::int64_t skipped_steps(const RunRecord& run) {
  if (run.end) return run.end->skipped;
  return std::count_if(run.steps.begin(), run.steps.end(), [](const StepEvent& s) { return s.skipped; });
}

Comparison compare_runs(std::span<const RunRecord> runs, const std::string& baseline, double tolerance, double confidence) {
  const std::vector<Group> groups = grouped_runs(runs, baseline);
  Comparison comparison{.baseline = baseline, .tolerance = tolerance, .confidence = confidence};
  std::vector<Measured> measured;
  for (const Group& group : groups) {
    measured.push_back(measure(group, groups[0]));
    comparison.rows.push_back(measured.back().row);
  }
  judge_rows(comparison, measured);
  return comparison;
}

}  // namespace octet::telemetry
