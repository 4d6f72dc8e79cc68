#pragma once

#include "octet/data/data_config.hpp"
#include "octet/health/alerts_config.hpp"
#include "octet/health/recovery_config.hpp"
#include "octet/optim/optimizer_config.hpp"
#include "octet/optim/loss_scale.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/scaling/precision.hpp"
#include "octet/train/run/config/model_config.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// How long and in which portions.
struct LoopConfig {
  std::int64_t steps = 0;            // optimizer steps; 0: as `tokens` or `max_seconds` says
  std::int64_t tokens = 0;           // tokens to train on; 0: no such limit
  double max_seconds = 0;            // of wall time; 0: no such limit
  std::int64_t batch = 4;            // sequences in a micro-batch
  std::int64_t accumulate = 1;       // micro-batches in an optimizer step
  std::int64_t eval_every = 50;      // steps; 0: at the end only
  std::int64_t eval_tokens = 16384;  // held-out tokens of an evaluation; 0: all
  double average = 0;                // share of the last steps whose weights are averaged; 0: none
  std::int64_t health_every = 10;    // steps between measurements of saturation, flushing and SQNR
  std::int64_t max_skipped = 10;     // skipped steps in a row after which the run stops
  std::int64_t sample_every = 0;     // steps between samples of text; 0: none
  std::string sample_prompt;         // that they continue; empty: the begin of a document
  std::int64_t sample_tokens = 64;
  double sample_temperature = 0.8;
  bool save_weights = true;  // the final weights, as a Hugging Face folder

  void fields(config::FieldVisitor&);
};

/// When a run saves checkpoints.
struct CheckpointConfig {
  std::int64_t every = 0;  // steps; 0: not by steps
  double minutes = 10;     // of wall time; 0: not by time
  std::int64_t keep = 3;   // newest checkpoints

  void fields(config::FieldVisitor&);
};

/// Outputs of a run besides metrics.jsonl.
struct TelemetryConfig {
  bool tensorboard = true;  // event files in the run's folder

  void fields(config::FieldVisitor&);
};

/// The configuration of a run: one TOML file, `--set`, and flags that are short forms of keys.
struct RunConfig {
  std::string name;             // of the run; empty: the recipe's
  std::string output = "runs";  // folder in which the run's own folder is made
  std::int64_t seed = 1;        // of weights and order of the data
  std::string device = "auto";  // auto | cpu | gpu
  bool deterministic = false;   // GPU: the same bits in every run
  std::int64_t threads = 0;     // of the CPU; 0: one for each processor
  ModelConfig model;
  scaling::PrecisionConfig recipe;
  models::AdapterConfig lora;
  nn::PreferenceConfig dpo;
  data::DataConfig data;
  LoopConfig train;
  optim::OptimizerConfig optim;
  optim::LossScaleConfig loss_scale;
  parallel::RanksConfig ranks;
  parallel::CommConfig comm;
  CheckpointConfig checkpoint;
  TelemetryConfig telemetry;
  health::AlertsConfig alerts;
  health::RecoveryConfig recovery;

  void fields(config::FieldVisitor&);

  /// On all ranks; ranks.data = 0 counts as one. Throws ConfigError where there are more than 2^53.
  std::int64_t tokens_per_step() const;
  /// Steps of the run, or 0 when only its time is known. Throws ConfigError when it has no end, or an empty one.
  std::int64_t steps() const;
};

/// The configuration of this run's engine. Throws ConfigError when the sequences are longer than the model takes.
EngineConfig engine_config(const RunConfig&);

}  // namespace octet::train
