#pragma once

#include "octet/parallel/axes.hpp"
#include "octet/parallel/sharded_weights.hpp"
#include "octet/parallel/gradient_sums.hpp"
#include "octet/parallel/work_in_turn.hpp"

namespace octet::parallel {

/// State and sums that ranks share of a model that they train, beside activations: sums of gradients, masters that ranks divide,
/// and queues for exchanges beside the computation. Where ranks share nothing, or one is alone, each part does nothing.
class Sharding {
 public:
  /// Of parameters with their memory, which have gradients if they are trained, and of weights beside them that do not train. `ends`: the
  /// parameter that the first and the last stage of a pipeline both have, or null. All outlive this. All ranks make it at the same time.
  Sharding(Stream&, Axes&, nn::Parameters&, const std::vector<nn::FrozenBucket>&, const CommConfig&, bool trains, Parameter* ends);
  ~Sharding() { axes_.partition().run_in_stream(), axes_.expert_exchange().run_in_stream(); }
  Sharding(const Sharding&) = delete;
  Sharding& operator=(const Sharding&) = delete;

  /// The micro-batches of a step, as of GradientSums.
  void begin_step(int micro_batches, bool exchanges);
  void begin_micro_batch(int micro_batch);
  /// It computes on after another one.
  void resume_micro_batch(int micro_batch) { gradient_sums_.resume_micro_batch(micro_batch); }
  void join(Stream&);
  /// After the step's last micro-batch: sums of gradients are complete.
  void end_step(Stream&);

  GradientSums& gradient_sums() { return gradient_sums_; }
  ShardedWeights& weights() { return weights_; }
  /// x = its sum over the ranks that have parts of the state. f64.
  void sum_over_parts(Stream&, const Tensor& x);
  /// x = its maximum over the ranks that divide masters.
  void max_over_masters(Stream&, const Tensor& x);

  /// Whether ranks have parts of the state, so that each saves its own.
  bool shards_state() const { return !owners_.empty(); }
  /// Of this rank's parts: false where another rank has the same and saves them.
  bool saves_parts() const { return shards_masters() ? axes_.same_shard().rank() == 0 : axes_.data().rank() < axes_.experts().size(); }
  /// The ranks whose parts together are the state.
  comm::Communicator& state_ranks() { return shards_state() ? axes_.all() : axes_.alone(); }
  /// Whether data ranks exchange something in each forward, so that all of them make the same ones.
  bool data_ranks_meet() const;
  /// Whether a forward and its backward exchange nothing with other ranks.
  bool computes_alone() const;
  /// Whether exchanges of activations run beside products.
  bool overlaps_activations() const { return activation_queue_ != nullptr; }
  comm::Traffic traffic(comm::Collective) const;
  /// Factors of gradients' sums.
  void visit_state(StateVisitor&);

 private:
  bool shards_masters() const { return parameters_.shard().shards(nn::Sharded::masters); }

  Axes& axes_;
  const nn::Parameters& parameters_;
  Parameter* ends_;
  std::unique_ptr<Stream> activation_queue_, gradient_queue_, expert_queue_;  // null: exchanges run in the stream
  std::unique_ptr<SideWork> beside_products_, beside_experts_;
  WorkInTurn in_turn_;
  CopiedGradients copied_gradients_;
  std::unique_ptr<comm::Communicator> of_ends_;  // the stages that have `ends`; or null
  GradientSums gradient_sums_;
  ShardedWeights weights_;
  std::vector<comm::Communicator*> owners_;  // of parts of the state
  bool exchanges_ = true;                    // in this step
};

}  // namespace octet::parallel
