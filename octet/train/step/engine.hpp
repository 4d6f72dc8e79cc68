#pragma once

#include <optional>

#include "octet/nn/frozen_parameters.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/nn/weight_scales.hpp"
#include "octet/parallel/sharding.hpp"
#include "octet/train/step/engine_config.hpp"
#include "octet/train/step/pipeline.hpp"
#include "octet/train/step/shared_scales.hpp"
#include "octet/train/step/stage_parameters.hpp"
#include "octet/train/step/upload.hpp"
#include "octet/train/step/weight_average.hpp"

namespace octet::train {

/// A model with its precision, parameters and optimizer on one stream: everything that one training step acts on. Built the same way on
/// the CPU and, for a dry run, on the null device. Weights are undefined until initialized or loaded.
class Engine {
 public:
  /// `ranks`: of all axes of the mesh, which must outlive the engine; null: this one alone.
  Engine(const EngineConfig&, Device, Target, comm::Communicator* ranks = nullptr);

  parallel::Axes axes;
  Stream stream;
  scaling::Precision precision;
  std::unique_ptr<const nn::Objective> objective;
  nn::DropoutDraws draws;  // of adapters
  std::unique_ptr<models::Model> model;
  nn::FrozenParameters frozen;  // where adapters train
  nn::Parameters parameters;    // that train
  std::optional<optim::Optimizer> optimizer;
  std::optional<optim::LossScale> loss_scale;
  std::optional<WeightAverage> average;
  parallel::Sharding sharding;
  nn::WeightScales weight_scales;
  Pipeline pipeline;
  StageParameters stage_parameters, stage_frozen;  // of `parameters` and of `frozen`
  SharedScales shared_scales;
  const std::int64_t longest_sequence;  // that the model has tables for

  /// Every parameter from its own Init.
  void initialize(std::uint64_t seed);
  /// The parameters that files of the model have: the frozen ones, or those that train.
  const std::vector<Parameter*>& own_parameters() const { return frozen.list().empty() ? parameters.list() : frozen.list(); }
  /// This step's loss: sums over micro-batches, and their mean f32 [1].
  nn::LossSums loss_sums() const { return {loss_sum_, counted_, preferences_, {}, ahead_sum_, ahead_counted_}; }
  /// The same to be collected elsewhere, as 0 in that region.
  nn::LossSums new_loss_sums(Region);
  Tensor mean_loss() const { return mean_loss_; }
  Tensor nonfinite() const { return nonfinite_; }                  // i64 [1]: infinities and NaNs that quantizers met
  Tensor parameter_squares() const { return parameter_squares_; }  // f64 [1]: squared norm of all parameters, when last measured
  void measure_parameters();
  /// The ranks that train this model, or this part of it, each on its own batches or, in a context group, on its part of them.
  comm::Communicator& ranks() { return axes.data(); }
  comm::Communicator& all_ranks() { return axes.all(); }
  /// A batch, or this rank's part of it, on the device.
  models::TokenBatch upload(const data::Batch&, Region);
  nn::Partition& partition() { return axes.partition(); }
  bool shards_state() const { return sharding.shards_state(); }
  bool saves_parts() const { return sharding.saves_parts(); }
  /// Forward and backward of the micro-batches of a step of so many tokens. `proceeds` and the piece: as Pipeline::Step.
  bool train(std::span<const data::Batch>, const scaling::Pass&, std::int64_t tokens, const std::function<bool()>& proceeds,
             const parallel::Turns::Piece& = {});
  /// The same of one, whose gradients stay those of this rank.
  void train_one(const data::Batch&, const scaling::Pass&, std::int64_t tokens);
  /// Before each forward and backward of a micro-batch of training; and before one computes on that took turns with another.
  void begin_micro_batch(int micro_batch);
  void resume_micro_batch(int micro_batch);
  /// All gradients of this step as one row, in the order of parameters, of whole ones; of stages of a pipeline the first one has them. All
  /// ranks call it.
  std::vector<float> flat_gradients();
  /// f32 [1], or empty unless documents are masked: the factor by which gradients of this step are too small, since they were made for the
  /// number of tokens in its batches, and not of targets.
  Tensor gradient_factor() const { return gradient_factor_; }
  /// Measures gradients and updates all weights, on all ranks, unless the step is beyond the limits.
  void update(double learning_rate, const optim::StepLimits& = {});
  /// After masters got other values than by an update: copies of divided ones become equal to them.
  void publish_weights();
  /// Quantizes every weight that changed, by the scales that quantizers have now. All ranks call it.
  void quantize_weights(const scaling::Pass&);
  /// The factor of the loss of a batch when a step has so many tokens.
  nn::LossFactor loss_factor(std::int64_t tokens) const { return {1.0f / float(tokens), loss_scale ? loss_scale->scale() : Tensor{}}; }
  /// Everything that the next step depends on; after restoring it, a StepRunner makes the rest.
  void visit_state(StateVisitor&);
  /// The part of it that does not depend on the precision plan: all but the state of quantizers.
  void visit_values(StateVisitor&);

  /// Of all groups of this rank.
  comm::Traffic traffic(comm::Collective c) const { return sharding.traffic(c); }
  SequenceMember sequence_member() { return {axes.context().rank(), axes.context().size()}; }

 private:
  Pipeline::Step step_of(const scaling::Pass&, std::int64_t tokens, bool exchanges);
  void begin_draws(const data::Batch&);
  std::vector<std::vector<float>> whole_gradients();

  Tensor loss_sum_, counted_, preferences_, ahead_sum_, ahead_counted_, mean_loss_, nonfinite_, parameter_squares_, gradient_factor_;
};

}  // namespace octet::train
