#pragma once

#include "octet/nn/balance.hpp"
#include "octet/nn/partition.hpp"
#include "octet/ops/route/route.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/tensor/state.hpp"

namespace octet::nn {

/// The routers of a model: loads of a step, the losses that balance them, and biases. Of a model without experts it has no memory, and does
/// nothing.
class Routers {
 public:
  struct Config {
    std::int64_t layers = 0;  // with experts
    std::int64_t experts = 0, choices = 0;
    bool biased = false;  // they have biases, also without bias_rate
    Balance balance = {};
  };
  /// Shared by the routers of one micro-batch.
  struct MicroBatch {
    const Routers* all = &no_routers();
    std::int64_t tokens = 0;  // of all members
    Tensor counts, sums;      // f32 [n, S, E]: of all layers together, or of each; of S sequences, or of all together
    ops::SequenceRows rows;   // the places of the own rows in the S sequences
    float factor = 0;         // of the loss, in which each token has it
    Tensor loss_scale = {};   // f32 [1] or empty
    bool records = false;     // into the loads of the step
  };

  Routers() = default;
  /// Those of a model without experts.
  static const Routers& no_routers();
  explicit Routers(const Config& config) : config_(config) {}

  /// Tables, in the run's region.
  void allocate(Stream&);
  /// A micro-batch of so many sequences. Each member of `parts` has as many tokens of every sequence, and of its `tokens` each member of
  /// the partition has a part in their order.
  struct Begin {
    const Partition& partition;
    const RowExchange& parts;
    std::int64_t tokens = 0, sequences = 0;
    float factor = 0;
    Tensor loss_scale = {};
    Tensor choices = {};  // joint_choices() so far; empty: none are before these
  };
  /// Before its forward, in the pass's region: zeros, or joint choices so far.
  MicroBatch begin(Stream&, const scaling::Pass&, const Begin&) const;
  /// Whether a loss counts the choices of all layers together.
  bool counts_jointly() const { return has_loss() && config_.balance.over == Balance::Over::model; }
  /// Memory for these where chunks of the model are computed apart, f32 [E]; else empty.
  Tensor joint_choices(Stream&, Region) const;
  /// Of a pass without backward.
  MicroBatch evaluating() const { return {.all = this}; }

  /// f32 [E], or empty; of the layer's router, counted among those with experts.
  Tensor bias(std::int64_t layer) const;
  /// Adds a layer's choices to the loads, if the micro-batch records.
  void add(Stream&, const MicroBatch&, std::int64_t layer, const Tensor& chosen, const Tensor& scores) const;
  /// Of members that have rows of one micro-batch each, between its forward and its backward: the counts become those of all rows.
  void join(Stream&, const MicroBatch&, RowExchange&) const;
  /// The loss's gradient of a layer's scores, in scratch; empty if there is none.
  Tensor score_gradient(Stream&, const MicroBatch&, std::int64_t layer) const;
  /// The factor of squared logs of each token's logits, without the loss scale.
  float z_factor(const MicroBatch& m) const { return float(config_.balance.z_loss) * m.factor; }

  /// Whether a loss is about shards of scores: their gradient is that of p / sum of p.
  bool relative() const { return config_.balance.over == Balance::Over::sequence; }

  std::int64_t layers() const { return config_.layers; }
  const Config& config() const { return config_; }
  /// Of this step so far, over micro-batches: f32 [layers, E] each. Empty without experts.
  const Tensor& counts() const { return counts_; }
  const Tensor& sums() const { return sums_; }
  /// f32 [layers, E]; empty without bias_rate, unless they are `biased`.
  const Tensor& biases() const { return biases_; }
  /// After each optimizer step, when the counts are those of all ranks. skip: f32 [1].
  void end_step(Stream&, const Tensor& skip);
  /// Before each step.
  void clear_loads(Stream&);
  void visit_state(StateVisitor&);

 private:
  bool has_loss() const { return config_.layers > 0 && config_.balance.loss > 0; }
  float score_factor(const MicroBatch&) const;

  Config config_;
  Tensor counts_, sums_, biases_;
};

}  // namespace octet::nn
