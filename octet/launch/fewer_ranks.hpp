#pragma once

#include <optional>

#include "octet/launch/launch.hpp"
#include "octet/launch/rank_end.hpp"

namespace octet::launch {

/// The rank that a start has lost: one that a signal ended or whose device failed, while others at most lost a peer. None if no rank can be
/// told from the others, or it failed by an error that would recur.
std::optional<int> lost_rank(const std::vector<RankEnd>&);

/// The options without a rank that does not come back: without its GPU, if it has one, on as many of the others as LaunchOptions::on_ranks
/// accepts, at least LaunchOptions::fewest_ranks. None if there is no such number. `run`: the folder of the run that continues.
std::optional<LaunchOptions> without(const LaunchOptions&, int rank, const std::string& run);

}  // namespace octet::launch
