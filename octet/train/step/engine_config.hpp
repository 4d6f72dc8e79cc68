#pragma once

#include <optional>

#include "octet/models/adapters.hpp"
#include "octet/models/registry.hpp"
#include "octet/optim/optimizer.hpp"
#include "octet/optim/loss_scale.hpp"
#include "octet/parallel/ranks_config.hpp"

namespace octet::train {

/// The configuration of an engine.
struct EngineConfig {
  models::ModelShape shape;
  models::ModelOptions model;
  scaling::PrecisionConfig precision;
  std::optional<optim::OptimizerConfig> optimizer;  // none: for evaluation only, without gradients and with f32 values
  optim::LossScaleConfig loss_scale = {};           // with an optimizer
  std::int64_t sequence = 0;                        // longest sequence
  std::int64_t sampled = 0;                         // tokens of a text that is sampled while it trains; 0: none
  std::int64_t micro_batches = 0;                   // of a step; 0: not known
  bool average = false;                             // weights are averaged over some steps
  bool document_mask = false;                       // batches tell where documents begin, and the model keeps them apart
  parallel::CommConfig comm = {};                   // of several ranks
  parallel::RanksConfig ranks = {};                 // its stage of ZeRO
  int planned_ranks = 1;                            // of the data and context axes, in a dry run
  models::AdapterConfig adapters = {};              // that train, with an optimizer, in place of the model's own weights
  nn::PreferenceConfig preference = {};             // the loss is one of pairs of answers; with document_mask
  std::uint64_t seed = 1;                           // of draws while it trains
};

}  // namespace octet::train
