#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/telemetry/paired_gap.hpp"

namespace octet::telemetry {

/// The judgement of an arm in a comparison.
enum class Verdict {
  baseline,      // the reference of the others; also its twins, which are never judged
  within,        // the whole interval of its gap is at most the tolerance
  over,          // the whole interval is above the tolerance
  not_resolved,  // neither: more seeds or longer runs are needed
  diverged,      // a seed did not reach its end
};

/// "baseline", "within", "over", "not resolved", "diverged".
std::string to_text(Verdict);
/// The verdict that to_text() calls so; none for any other text.
std::optional<Verdict> verdict_named(std::string_view text);

/// Fewer pairs than this resolve nothing: an interval from two is wider than any difference of interest, and one pair has none.
inline constexpr int fewest_pairs = 3;

/// A gap, judged.
struct Judged {
  Verdict verdict = Verdict::not_resolved;
  double half_width = 0;  // of the gap's interval, at the confidence that this arm was judged with; NaN of fewer than 2 pairs
};

/// Judges the gap of each arm against `tolerance`, all together at `confidence`: the chance that any verdict `within` or `over` is wrong is
/// at most 1 - confidence. By Holm's procedure: arms with at least fewest_pairs are taken in the order of their p-values for "the gap is
/// the tolerance"; the k-th of m gets an interval of confidence 1 - (1 - confidence) / (m - k + 1), and after the first whose interval
/// contains the tolerance no other is resolved. Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".
/// Arms with fewer pairs get an interval of plain `confidence`.
std::vector<Judged> judge(std::span<const PairedGap> arms, double tolerance, double confidence);

}  // namespace octet::telemetry
