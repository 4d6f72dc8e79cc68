#include "octet/telemetry/verdict.hpp"

#include <algorithm>
#include <cstddef>

#include "octet/base/check.hpp"

namespace octet::telemetry {
namespace {

constexpr Verdict all_verdicts[] = {Verdict::baseline, Verdict::within, Verdict::over, Verdict::not_resolved, Verdict::diverged};

}  // namespace

std::string to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::baseline: return "baseline";
    case Verdict::within: return "within";
    case Verdict::over: return "over";
    case Verdict::not_resolved: return "not resolved";
    case Verdict::diverged: return "diverged";
  }
  return "unknown";
}

std::optional<Verdict> verdict_named(std::string_view text) {
  for (const Verdict verdict : all_verdicts)
    if (text == to_text(verdict)) return verdict;
  return std::nullopt;
}

std::vector<Judged> judge(std::span<const PairedGap> arms, double tolerance, double confidence) {
  check(confidence > 0 && confidence < 1, "judge: the confidence must be in (0, 1), got {}", confidence);
  std::vector<Judged> out;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    out.push_back({Verdict::not_resolved, half_width(arms[i], confidence)});
    if (arms[i].pairs >= fewest_pairs) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_value(arms[a], tolerance) < p_value(arms[b], tolerance); });
  bool resolved = true;
  std::size_t left = order.size();
  for (const std::size_t i : order) {
    const PairedGap& gap = arms[i];
    const double reach = half_width(gap, 1 - (1 - confidence) / double(left));
    out[i].half_width = reach;
    const bool within = gap.mean + reach <= tolerance, over = gap.mean - reach > tolerance;
    resolved = resolved && (within || over);
    if (!resolved) continue;
    out[i].verdict = within ? Verdict::within : Verdict::over;
    --left;
  }
  return out;
}

}  // namespace octet::telemetry
