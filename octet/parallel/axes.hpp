#pragma once

#include <optional>

#include "octet/comm/mesh.hpp"
#include "octet/comm/self/self.hpp"
#include "octet/nn/bucket.hpp"
#include "octet/nn/frozen_bucket.hpp"
#include "octet/parallel/context_group.hpp"
#include "octet/parallel/expert_group.hpp"
#include "octet/parallel/tensor_group.hpp"

namespace octet::parallel {

/// The ranks that have the same parameters as this one: all of them, or stacks of experts. Of all of them, those that divide the state, and
/// those that have the same part of it. Beside them, those that have other parts of the same matrices.
struct Sharers {
  comm::Communicator& all;
  comm::Communicator& experts;
  comm::Communicator& owners;
  comm::Communicator& owners_of_stacks;
  comm::Communicator& copies;
  comm::Communicator& parts;
  comm::Communicator& parts_of_stacks;
  comm::Communicator& of(const nn::Bucket& b) const { return b.experts ? experts : all; }
  comm::Communicator& owners_of(const nn::Bucket& b) const { return b.experts ? owners_of_stacks : owners; }
  comm::Communicator& owners_of(const nn::FrozenBucket& b) const { return b.experts() ? owners_of_stacks : owners; }
  comm::Communicator& parts_of(const nn::Bucket& b) const { return b.experts ? parts_of_stacks : parts; }
};

/// A parameter that two stages of a pipeline have, each with a part of its gradient; without one, null and this rank alone.
struct SharedEnd {
  const Parameter* parameter;
  comm::Communicator& stages;
};

/// The ranks of a run by their tasks. Ranks of one tensor group divide each layer and train on the same sequences; each data group
/// has one rank of every tensor group. Ranks of one pipeline have some blocks each, and train on the same sequences. Ranks of one context
/// group have parts of the same sequences, and are neighbours within a data group. Ranks of one expert group divide the experts of each
/// layer, and are neighbours within a data group, too; all else is on each of them. The tensor axis is the fast one, so a group has
/// neighbours, which share the fastest links; stages are furthest from each other. Ranks of one shard group divide the state, and are
/// neighbours within a data group; the same parts are in each of its shard groups. A shard group has complete expert groups. One rank is a
/// mesh of ones, on which exchanges are identities.
class Axes {
 public:
  /// `all` outlives this; null: this rank alone. All ranks make it at the same time. Throws ConfigError unless their number is a multiple
  /// of RanksConfig::beside_data().
  Axes(comm::Communicator* all, const RanksConfig&, const CommConfig& = {});

  comm::Communicator& all() { return *all_; }
  /// The ranks that have the same part of the model, each with sequences, or parts of sequences, of its own.
  comm::Communicator& data() { return mesh_ ? mesh_->along("data") : *all_; }
  /// The ranks that divide the model; one alone where none does.
  comm::Communicator& tensor() { return mesh_ ? mesh_->along("tensor") : self_; }
  /// The stages of one pipeline; one alone where there is none.
  comm::Communicator& pipeline() { return mesh_ ? mesh_->along("pipeline") : self_; }
  /// The ranks that have parts of the same sequences; one alone where ranks have whole ones.
  comm::Communicator& context() { return context_ ? *context_ : self_; }
  /// The ranks of data() that divide the experts, and those that have the same ones as this rank; one alone, and all, where none divides
  /// them.
  comm::Communicator& experts() { return experts_ ? *experts_ : self_; }
  comm::Communicator& same_experts() { return same_experts_ ? *same_experts_ : data(); }
  /// The ranks of data() that divide its state, and those that have the same part; all, and one alone, where there is one such group.
  comm::Communicator& shards() { return shards_ ? *shards_ : data(); }
  comm::Communicator& same_shard() { return same_shard_ ? *same_shard_ : self_; }
  /// Of shards(), those that have the same experts, and so divide the state of their stacks.
  comm::Communicator& shards_of_stacks() { return shards_of_stacks_ ? *shards_of_stacks_ : same_experts(); }
  nn::ExpertExchange& expert_exchange() { return *expert_exchange_; }
  /// Of forwards and backwards that a schedule pairs: in turn where a configuration asks for it, and under dualpipe_v where ranks divide
  /// experts. Rows of activations then travel beside other computation.
  Turns& turns() { return *turns_; }
  /// Those that passes take at exchanges of tensor ranks: the same, or none.
  Turns& turns_of_rows() { return *turns_of_rows_; }
  /// The ranks that have parts of the same matrices: of layers, of stacks of experts, or of both. Some of them have equal parts.
  nn::Partition& parts() { return *parts_; }
  /// The ranks of tensor() as those that divide each layer, and those of context() as those that share sequences.
  nn::Partition& partition() { return *partition_; }
  nn::RowExchange& sequences() { return *sequences_; }
  /// This rank alone.
  comm::Communicator& alone() { return self_; }
  /// The context groups among data(), and the own one.
  int sequence_groups() { return data().size() / context().size(); }
  int sequence_group() { return data().rank() / context().size(); }
  bool divides_sequences() { return context().size() > 1; }
  bool divides_experts() { return experts().size() > 1; }
  bool divides_layers() { return tensor().size() > 1; }
  /// Ranks of one stage of a pipeline, which are neighbours.
  int of_stage() { return tensor().size() * data().size(); }
  bool has_stages() { return pipeline().size() > 1; }
  /// Whether this rank is the first of its stage.
  bool leads_stage() { return all().rank() % of_stage() == 0; }
  /// Of all groups of this rank.
  comm::Traffic traffic(comm::Collective) const;

 private:
  void make_groups(const RanksConfig&);
  std::unique_ptr<comm::Communicator> in_data(const std::vector<int>& ranks, std::int64_t tensor);
  void divide_experts(const RanksConfig&);
  void divide_shards(const RanksConfig&);
  void join_parts(const RanksConfig&);

  comm::SelfCommunicator self_;
  comm::Communicator* all_;
  std::optional<comm::Mesh> mesh_;
  std::unique_ptr<comm::Communicator> context_, experts_, same_experts_, shards_, same_shard_, shards_of_stacks_, with_parts_;
  std::unique_ptr<nn::Partition> partition_, parts_;
  std::unique_ptr<Turns> turns_;
  Turns* turns_of_rows_ = nullptr;
  std::unique_ptr<nn::ExpertExchange> expert_exchange_;
  std::unique_ptr<nn::RowExchange> sequences_;
};

}  // namespace octet::parallel
