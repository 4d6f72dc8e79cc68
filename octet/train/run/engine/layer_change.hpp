#pragma once

#include "octet/train/run/config/final_part.hpp"
#include "octet/train/run/engine/run_engine.hpp"

namespace octet::train {

/// The precision by which a run trains at some step.
struct PrecisionNow {
  std::string recipe;                 // of the linear layers: recipe.name, or recipe.final
  std::vector<std::string> layers{};  // in recovery.layers.recipe instead

  bool operator==(const PrecisionNow&) const = default;
};
/// The engine's configuration then.
EngineConfig engine_config(const RunConfig&, const PrecisionNow&);
/// Whether this machine can have an engine of another precision plan in place of that of the run.
struct LayerChange {
  std::string obstacle{};  // why not; "" if it can
  DryRun dry{};            // of the other engine
};
/// Call it while the copy of the state exists, which needs memory, too.
LayerChange layer_change(const EngineConfig&, const RunConfig&, RunEngine&);

/// Why this rank will refuse a change of layers in any case in a run of this engine; "" if it may be possible.
std::string never_possible(const RunConfig&, RunEngine&);

/// "layers.0.mlp.down: x e4m3, ... -> bf16" for each layer.
std::string plan_changes(std::span<const std::string> layers, const std::vector<scaling::PlanRow>& before,
                         const std::vector<scaling::PlanRow>& after);

/// Throws ConfigError for adapters without a model to start from, or with a final precision.
void require_adapters(const RunConfig&);

/// Throws ConfigError if recovery cannot act as configured: without alerts, or with a recipe that does not exist or does not fit.
void require_recovery(const RunConfig&);

}  // namespace octet::train
