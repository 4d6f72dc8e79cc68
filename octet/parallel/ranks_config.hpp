#pragma once

#include <algorithm>

#include "octet/comm/mesh.hpp"
#include "octet/config/fields.hpp"
#include "octet/parallel/pipeline/schedule.hpp"
#include "octet/parallel/wire.hpp"

namespace octet::parallel {

/// The ranks of a run, as [ranks] in TOML.
struct RanksConfig {
  std::int64_t data = 0;                      // ranks that each train on their own sequences; 0: all that were started
  std::int64_t tensor = 1;                    // ranks that divide each layer, and train on the same sequences
  std::int64_t context = 1;                   // ranks that have parts of the same sequences
  std::int64_t expert = 1;                    // of the data ranks, neighbours that divide the experts of each layer: no factor of all()
  double expert_room = 0;                     // memory for rows of experts, of those at equal loads; 0: of the worst choice
  std::int64_t pipeline = 1;                  // ranks that each have some blocks
  Schedule schedule = Schedule::one_f_one_b;  // of the pipeline's micro-batches
  std::int64_t chunks = 1;                    // of blocks, per rank of the pipeline
  std::int64_t zero = 0;                      // stage of ZeRO
  std::int64_t shard = 0;                     // neighbours of the data axis among which it divides the state; 0: all of it
  double limit_seconds = 60;                  // how long a rank waits for another

  /// Of a rank of the pipeline: one stage is one chunk.
  std::int64_t chunks_of_stage() const { return pipeline == 1 ? 1 : chunks_of(schedule, chunks); }
  void fields(config::FieldVisitor&);
  /// That train on the same sequences.
  std::int64_t of_sequence() const { return tensor * context * pipeline; }
  /// The axes beside data that have several ranks, and their words: "ranks.tensor = 2 and ranks.pipeline = 4".
  std::vector<comm::Axis> axes_beside_data() const;
  std::string axes_text() const;
  /// Of a pipeline, the stage of a rank among all().
  int stage_of(int rank) const { return int(rank * pipeline / all()); }
  /// Ranks, or groups of them, that train on sequences of their own; data = 0 counts as one.
  std::int64_t sequence_groups() const { return std::max<std::int64_t>(data, 1); }
  /// That have the same part of the model.
  std::int64_t of_part() const { return sequence_groups() * context; }
  /// Of so many ranks that have the same part of the model, those of a group that divides their state.
  std::int64_t of_shards(std::int64_t ranks) const { return shard > 0 ? shard : ranks; }
  /// Whether so many data ranks have complete groups of experts and of shards.
  bool fits_groups(std::int64_t data_ranks) const { return data_ranks % expert == 0 && (shard == 0 || data_ranks * context % shard == 0); }
  /// On all axes but data.
  std::int64_t beside_data() const { return of_sequence(); }
  /// On all axes of the mesh.
  std::int64_t all() const { return of_part() * tensor * pipeline; }
};

/// The data that ranks exchange and its format, as [comm] in TOML.
struct CommConfig {
  Wire gradients = Wire::stored;
  ops::MuGrowth mu_growth = ops::MuGrowth::at_zero;  // when the factor mu of e4m3_shared grows
  TensorWire tensor = TensorWire::activations, pipeline = TensorWire::activations;
  ExpertWire experts = ExpertWire::recipe;
  bool turns = false;   // the backward of a micro-batch and the forward of the next one take turns at exchanges of tensor and expert ranks
  bool overlap = true;  // on GPUs, ranks exchange gradients, weights and activations while they compute
  bool peer_memory = true;  // GPUs of one machine exchange large tensors through each other's memory

  void fields(config::FieldVisitor&);
  /// Whether a factor mu is in use.
  bool has_mu(Storage gradients) const;
};

}  // namespace octet::parallel
