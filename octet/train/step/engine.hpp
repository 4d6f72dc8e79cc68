#pragma once

#include <optional>

#include "octet/nn/parameters.hpp"
#include "octet/nn/weight_scales.hpp"
#include "octet/parallel/axes.hpp"
#include "octet/parallel/context_group.hpp"
#include "octet/parallel/divided_weights.hpp"
#include "octet/parallel/gradient_sums.hpp"
#include "octet/tensor/replay.hpp"
#include "octet/train/step/engine_config.hpp"
#include "octet/train/step/pipeline.hpp"
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
  std::optional<parallel::TensorGroup> tensor_group;  // of ranks that divide each layer
  Stream stream;
  std::optional<parallel::ContextGroup> context_group;  // of ranks that have parts of the same sequences
  scaling::Precision precision;
  std::unique_ptr<models::Model> model;
  nn::Parameters parameters;
  std::optional<optim::AdamW> optimizer;
  std::optional<optim::LossScale> loss_scale;
  std::optional<WeightAverage> average;
  std::optional<Stream> exchanges;                            // of several ranks whose exchanges overlap: the side queue of these
  std::optional<Stream> activation_exchanges;                 // the same of a tensor group
  std::optional<parallel::CopiedGradients> copied_gradients;  // of a tensor group
  std::optional<parallel::GradientSums> gradient_sums;        // of several ranks
  std::optional<parallel::DividedWeights> divided_weights;    // from stage 1 of ZeRO on
  std::optional<nn::WeightScales> weight_scales;              // of a tensor group
  std::optional<Pipeline> pipeline;                           // of ranks that have some blocks each
  std::optional<StageParameters> stage_parameters;            // of these
  Replay micro_steps;                                         // forward and backward of a micro-batch

  /// This step's loss: sums over micro-batches, and their mean f32 [1].
  nn::LossSums loss_sums() const { return {loss_sum_, counted_}; }
  Tensor mean_loss() const { return mean_loss_; }
  Tensor nonfinite() const { return nonfinite_; }                  // i64 [1]: infinities and NaNs that quantizers met
  Tensor parameter_squares() const { return parameter_squares_; }  // f64 [1]: squared norm of all parameters, when last measured
  void measure_parameters();
  nn::MasterWeights* master_weights() { return divided_weights ? &*divided_weights : nullptr; }
  /// The ranks that train this model, or this part of it, each on its own batches or, in a context group, on its part of them.
  comm::Communicator& ranks() { return axes.data(); }
  comm::Communicator& all_ranks() { return axes.all(); }
  /// A batch, or this rank's part of it, on the device.
  models::TokenBatch upload(const data::Batch&, Region);
  nn::Partition& partition() { return tensor_group ? static_cast<nn::Partition&>(*tensor_group) : nn::whole_partition(); }
  /// Whether ranks have parts of the state, so that each saves its own.
  bool divides_state() const { return divided_weights || tensor_group || pipeline; }
  /// Of this rank's parts: false where another rank has the same and saves them.
  bool saves_parts() { return divided_weights || ranks().rank() == 0; }
  /// Before forward and backward of each micro-batch of training.
  void begin_micro_batch(const parallel::GradientSums::MicroBatch&);
  /// Before the first of a pipeline's micro-batches, of which several are in flight at once, and before each of their forwards and
  /// backwards.
  void begin_micro_batches(int count, bool exchanges);
  void begin_in_flight(int micro_batch);
  /// After them, as a part of the same recording.
  void end_micro_batch();
  /// A number that differs where the work of micro-batches does, by their places.
  std::int64_t form_of(const parallel::GradientSums::MicroBatch& m) const {
    return gradient_sums || copied_gradients ? 1 + m.first + 2 * m.last + 4 * m.exchanges : 0;
  }
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
  comm::Traffic traffic(comm::Collective) const;
  SequenceMember sequence_member() { return {axes.context().rank(), axes.context().size()}; }

 private:
  void make_pipeline(const EngineConfig&);
  void sum_shared_gradient();
  std::vector<std::vector<float>> whole_gradients();

  bool last_micro_batch_ = true;
  int in_flight_ = 0;                          // micro-batches of a pipeline's step
  std::optional<QueuedWork> beside_products_;  // in activation_exchanges
  std::unique_ptr<comm::Communicator> ends_;   // the first and the last stage of a pipeline, where they share a parameter
  Tensor loss_sum_, counted_, mean_loss_, nonfinite_, parameter_squares_, gradient_factor_;
};

}  // namespace octet::train
