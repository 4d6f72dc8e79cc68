#pragma once

#include "octet/config/read.hpp"
#include "octet/train/run/run_config.hpp"

namespace octet::train {

/// Options that were given another value than their default and have no effect in this run, each as a sentence: where it was set, and
/// why it does nothing. With `compared` recipes, an option counts that any of them reads.
std::vector<std::string> idle_options(const RunConfig&, const config::Origins&, const std::vector<std::string>& compared = {});

}  // namespace octet::train
