#include "octet/launch/fewer_ranks.hpp"

#include <algorithm>

#include "octet/base/error.hpp"

namespace octet::launch {

std::optional<int> lost_rank(const std::vector<RankEnd>& ends) {
  const auto first = cause(ends);
  if (!first || !first->failed()) return {};
  if (first->signal > 0 || first->code == int(ExitCode::device)) return first->rank;
  if (!first->lost_a_peer()) return {};
  // All told of a lost peer, and the launcher killed the one that did not.
  std::optional<int> lost;
  for (const RankEnd& e : ends) {
    if (e.signal == 0) continue;
    if (lost) return {};
    lost = e.rank;
  }
  return lost;
}

std::optional<LaunchOptions> without(const LaunchOptions& options, int rank, const std::string& run) {
  if (!options.on_ranks || run.empty()) return {};
  LaunchOptions out = options;
  int most = options.choice.ranks - 1;
  if (options.choice.way == Way::gpus) {
    out.machine.gpus.erase(out.machine.gpus.begin() + rank);
    most = std::min(options.choice.ranks, int(out.machine.gpus.size()));
  }
  for (out.choice.ranks = most; out.choice.ranks >= std::max(options.fewest_ranks, 1); --out.choice.ranks)
    if (auto words = options.on_ranks(options.words, run, out.choice.ranks)) {
      out.words = std::move(*words);
      return out;
    }
  return {};
}

}  // namespace octet::launch
