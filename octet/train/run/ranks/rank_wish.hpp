#pragma once

#include "octet/machine/ranks.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The ranks that a run of this configuration wishes for: all axes together, or as many as a launcher has started.
machine::RankWish rank_wish(const RunConfig&);

}  // namespace octet::train
