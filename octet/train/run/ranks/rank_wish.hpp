#pragma once

#include "octet/machine/ranks.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The ranks that a run of this configuration wishes for: all axes together, or as many as a launcher has started. Where the configuration
/// says how many, throws ConfigError for a layout that this version does not train, before a rank starts.
machine::RankWish rank_wish(const RunConfig&);

}  // namespace octet::train
