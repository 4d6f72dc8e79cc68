#pragma once

#include <string>

#include "octet/telemetry/run_facts.hpp"
#include "octet/train/run/dry_run.hpp"

namespace octet::train {

/// Makes `output`/`name`, or `name`-2, -3, ... when that is taken, says so, and returns its path. Throws IoError naming the folder and the
/// reason when it cannot be written.
std::string make_run_folder(const std::string& output, const std::string& name);

/// The contents of run.json before the first step.
telemetry::RunFacts facts_of(const RunConfig&, const models::ModelShape&, const DryRun&);

/// The telemetry form of a memory peak.
telemetry::MemoryUse memory_use_of(const MemoryPeak&);

/// The plan "layer -> precision -> why" as an aligned table; runs of blocks that share a plan take one line.
std::string plan_text(const std::vector<scaling::PlanRow>&);

}  // namespace octet::train
