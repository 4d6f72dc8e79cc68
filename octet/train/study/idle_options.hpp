#pragma once

#include "octet/config/read.hpp"
#include "octet/train/study/study.hpp"

namespace octet::train {

/// Options of a comparison that have no effect, each as a sentence: values other than in `defaults` that no arm reads, because every arm
/// sets the key itself or has no use for it, and keys of an arm that this arm does not read.
std::vector<std::string> idle_options(const StudyConfig&, const RunConfig& defaults, const config::Origins&);

}  // namespace octet::train
