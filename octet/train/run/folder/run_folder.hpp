#pragma once

#include <string>

#include "octet/models/companions.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"

namespace octet::train {

/// Makes `output`/`name`, or `name`-2, -3, ... when that is taken, says so, and returns its path. Throws IoError naming the folder and the
/// reason when it cannot be written.
std::string make_run_folder(const std::string& output, const std::string& name);

/// Where a run's checkpoints are.
std::string checkpoint_folder(const std::string& run_folder);

/// The folder of a run that keeps its model's companions.
std::string model_folder(const std::string& run_folder);
/// The companions of a run's model: those that its folder keeps; in a new run (`run_folder` empty) those of model.init, or else those that
/// the token folder has. `tokenizer`: the identity of the dataset's, which a tokenizer.json among them must have, since final weights go
/// out with it. Throws DataError when it is another one, or when the token folder lacks it.
models::Companions companions_of(const RunConfig&, const std::string& run_folder, const std::string& tokenizer);
/// Writes them into the run's model_folder(), with the tensors of model.init that Octet does not compute with, unless they are there
/// already or there are none. Throws IoError.
void store_companions(const std::string& run_folder, const ModelConfig&, const models::Companions&);
/// The same ones, whose tensors are those that the run's folder has.
models::Companions stored_companions(models::Companions, const std::string& run_folder);
/// `config` as a run in that folder needs it: its model is described by model_folder(), where that has a config.json.
RunConfig stored_model(RunConfig config, const std::string& run_folder);

/// The part of it about ranks: those of the configuration, and their plan.
telemetry::RanksFacts ranks_facts_of(const RunConfig&, const DryRun&);
/// The contents of run.json before the first step.
telemetry::RunFacts facts_of(const RunConfig&, const models::ModelShape&, const DryRun&);

/// The telemetry form of a memory peak.
telemetry::MemoryUse memory_use_of(const MemoryPeak&);

/// The plan "layer -> precision -> why" as an aligned table; runs of blocks that share a plan take one line.
std::string plan_text(const std::vector<scaling::PlanRow>&);

}  // namespace octet::train
