#include "octet/telemetry/findings.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/student_t.hpp"

namespace octet::telemetry {
namespace {

constexpr int most_seeds = 10000;

std::string percent(double fraction) { return fixed(100 * fraction, 2) + "%"; }
std::string signed_gap(double fraction) { return (fraction < 0 ? "" : "+") + percent(fraction); }

/// "a", "a and b", "a, b and c"
std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return out;
}

std::string with_gap(const ComparisonRow& row) {
  std::string out = row.arm;
  if (!std::isfinite(row.gap)) return out;
  out += " (" + signed_gap(row.gap);
  return out + (std::isfinite(row.gap_half_width) ? " ±" + percent(row.gap_half_width) : "") + ")";
}

/// The arms with that verdict, named; with their gaps where `gaps`.
std::vector<std::string> arms_with(const Comparison& c, Verdict verdict, bool gaps) {
  std::vector<std::string> out;
  for (const ComparisonRow& row : c.rows)
    if (row.twin == 0 && row.verdict == verdict) out.push_back(gaps ? with_gap(row) : row.arm);
  return out;
}

// Arms that run little or nothing in FP8, so that their gaps say little about it.
std::string about_eight_bits(const Comparison& c) {
  std::vector<std::string> none, few;
  for (const ComparisonRow& row : c.rows) {
    if (row.twin > 0 || few_eight_bits(row.eight_bit_share).empty()) continue;
    if (row.eight_bit_share == 0) none.push_back(row.arm);
    else few.push_back(format("{} ({})", row.arm, few_eight_bits(row.eight_bit_share)));
  }
  std::string out;
  if (!none.empty()) out += format("No layer of {} runs in FP8: the plan has the reasons. ", list_of(none));
  if (!few.empty()) out += format("Less than half of the work of matrix products runs in FP8: {}. ", list_of(few));
  return out;
}

std::string sentence(const std::vector<std::string>& arms, const std::string& one, const std::string& many) {
  return arms.empty() ? "" : list_of(arms) + (arms.size() == 1 ? one : many) + ". ";
}

std::string about_twins(const Comparison& c) {
  double largest = 0;
  int twins = 0;
  for (const ComparisonRow& row : c.rows)
    if (row.twin > 0 && std::isfinite(row.gap)) ++twins, largest = std::max(largest, std::fabs(row.gap));
  if (twins == 0) return "";
  return format("{} of {}, whose first weights differ in their last bit, end{} {}{} from it. ",
                twins == 1 ? "A twin" : format("{} twins", twins), c.baseline, twins == 1 ? "s" : "", twins == 1 ? "" : "up to ",
                percent(largest));
}

/// Whether the interval of a row's gap lies wholly on one side of 0.
bool distinguishable(const ComparisonRow& row) { return std::fabs(row.gap) > row.gap_half_width; }

std::string about_zero(const Comparison& c) {
  std::vector<std::string> apart;
  int seeds = 0, arms = 0;
  for (const ComparisonRow& row : c.rows) {
    if (row.twin > 0 || row.arm == c.baseline || !std::isfinite(row.gap)) continue;
    ++arms, seeds = std::max(seeds, row.seeds);
    if (distinguishable(row)) apart.push_back(row.arm);
  }
  if (arms == 0) return "";
  if (seeds < fewest_pairs)
    return format("{} no arm from {}. ", seeds == 1 ? "One seed distinguishes" : "Two seeds distinguish", c.baseline);
  if (apart.empty()) return format("No arm can be distinguished from {}: every interval contains 0. ", c.baseline);
  return format("{} can be distinguished from {}{}. ", list_of(apart), c.baseline, int(apart.size()) < arms ? ", the others cannot" : "");
}

std::string about_seeds(const Comparison& c) {
  const int arms =
      int(std::count_if(c.rows.begin(), c.rows.end(), [&](const ComparisonRow& r) { return r.twin == 0 && r.arm != c.baseline; }));
  const double deviation = pair_deviation(c);
  if (!std::isfinite(deviation) || !(c.tolerance > 0)) return "";
  const int seeds = seeds_to_resolve(c.tolerance, deviation, arms, c.confidence);
  const std::string many = seeds > 100 ? "more than 100 seeds" : format("about {} seeds", seeds);
  return format("Intervals of ±{} need {} of such runs, or longer runs.", percent(c.tolerance), many);
}

}  // namespace

std::string verdict_text(const ComparisonRow& row) {
  if (row.twin > 0) return row.state == RunState::diverged ? to_text(Verdict::diverged) : "twin";
  std::string out = to_text(row.verdict);
  if (row.verdict == Verdict::not_resolved && std::isfinite(row.gap_half_width)) out += format(" (±{})", percent(row.gap_half_width));
  const std::string few = few_eight_bits(row.eight_bit_share);
  return few.empty() ? out : out + ", " + few;
}

std::string few_eight_bits(double share) {
  if (!(share < 0.5)) return "";
  return share == 0 ? "no layer in FP8" : format("{}% of FLOP in FP8", fixed(100 * share, share < 0.01 ? 2 : 0));
}

std::string findings(const Comparison& c) {
  const std::string limit = percent(c.tolerance) + " of " + c.baseline;
  const auto open = arms_with(c, Verdict::not_resolved, true), beyond = arms_with(c, Verdict::over, true);
  std::string verdicts = sentence(arms_with(c, Verdict::within, false), " is within " + limit, " are within " + limit);
  verdicts += sentence(beyond, " is over " + limit, " are over " + limit);
  verdicts += sentence(arms_with(c, Verdict::diverged, false), " diverged", " diverged");
  verdicts += sentence(open, " is not resolved against " + limit, " are not resolved against " + limit);
  if (verdicts.empty()) verdicts = c.baseline + " alone was trained. ";
  std::string out = about_eight_bits(c) + verdicts + about_zero(c) + about_twins(c);
  if (!open.empty()) out += about_seeds(c);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

int seeds_to_resolve(double width, double deviation, int arms, double confidence) {
  const double tail = (1 - confidence) / (2 * std::max(arms, 1));
  const auto enough = [&](int n) { return student_t_quantile(tail, n - 1) * deviation / std::sqrt(n) <= width; };
  int low = fewest_pairs, high = most_seeds;  // the least that is enough lies in [low, high]
  while (low < high) {
    const int middle = (low + high) / 2;
    if (enough(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

double pair_deviation(const Comparison& c) {
  double squares = 0;
  int several = 0;
  std::vector<double> sizes;
  for (const ComparisonRow& row : c.rows) {
    if (row.twin == 0 && row.arm == c.baseline) continue;
    if (std::isfinite(row.gap_deviation)) squares += row.gap_deviation * row.gap_deviation, ++several;
    if (std::isfinite(row.gap)) sizes.push_back(std::fabs(row.gap));
  }
  if (several > 0) return std::sqrt(squares / several);
  if (sizes.empty()) return NAN;
  constexpr double median_of_normal = 0.6744897501960817;  // of |x|, x normal with deviation 1
  std::sort(sizes.begin(), sizes.end());
  const std::size_t n = sizes.size();
  return (sizes[(n - 1) / 2] + sizes[n / 2]) / 2 / median_of_normal;
}

}  // namespace octet::telemetry
