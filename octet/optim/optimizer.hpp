#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "octet/ops/adamw/adamw.hpp"
#include "octet/optim/optimizer_config.hpp"
#include "octet/optim/update.hpp"
#include "octet/tensor/parameter_slice.hpp"
#include "octet/tensor/state.hpp"

namespace octet::optim {

/// The largest loss and gradient norm of a step that is applied.
struct StepLimits {
  float loss = std::numeric_limits<float>::infinity(), gradient_norm = std::numeric_limits<float>::infinity();
};

/// The update of a model's parameters by the configured optimizer, with clipping of the global gradient norm: measure() the gradients,
/// then decide on the device how the step uses them and let each Update apply it. Everything that changes from step to step is in device
/// memory; a step whose loss, gradient norm or any quantized value is not finite, or whose loss or norm exceeds a limit, changes nothing
/// but the device's skip flag.
class Optimizer {
 public:
  /// Allocates the states of these slices. Their parameters must have storage and outlive this.
  Optimizer(Stream&, const OptimizerConfig&, std::vector<ParameterSlice>);

  /// Of all gradients of the slices that are counted here: the sum of squares, f64 [1], and the maximum of each, f32 [slices]. Where slices
  /// are parts, they must become the sum and the maxima of all parts before apply().
  void measure(Stream&);
  const Tensor& sum_of_squares() const { return total_; }
  const Tensor& maxima() const { return maxima_; }
  /// Clips and updates, after measure(). `loss`: f32 [n], must be finite; `nonfinite`: i64 [m] counters or empty, must be 0;
  /// `gradient_factor` and `loss_scale`: f32 [1] or empty, by which all gradients are multiplied and divided first.
  void apply(Stream&, double learning_rate, const Tensor& loss, const Tensor& nonfinite, const Tensor& gradient_factor = {},
             const Tensor& loss_scale = {}, const StepLimits& = {});
  /// measure() and apply(), where nothing is divided.
  void step(Stream& stream, double learning_rate, const Tensor& loss, const Tensor& nonfinite) {
    measure(stream);
    apply(stream, learning_rate, loss, nonfinite);
  }
  /// f32 [n, 2] each: {descale, max} of each state with a scale per tensor. Where slices are parts, they must become the maxima of all
  /// parts after apply().
  std::vector<Tensor> scalars() const;
  /// f32 [1] on the device: not 0 when the last step was skipped.
  Tensor skip() const { return state_.rows(ops::adamw_step_skip, 1); }
  /// i64 [1] on the device: number of applied updates.
  Tensor updates() const { return {state_.f32() + ops::adamw_step_updates, {1}, DType::i64}; }
  /// The scalars of the last step. Waits for it.
  ops::AdamWStep last(Stream& stream) const { return *HostCopy(stream, state_).as<ops::AdamWStep>(); }

  /// The updated parameters, or parts of them.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  /// A state of a parameter: "layers.0.attn.qkv.weight.m".
  struct State {
    std::string name;
    const ParameterSlice* of;
    Stored stored;
    Tiny tiny;
  };
  std::vector<State> states() const;
  /// All states (codes, and scales where they have some), and the scalars of the last step.
  void visit_state(StateVisitor&);

  const OptimizerConfig& config() const { return config_; }

 private:
  void make_updates(Stream&);

  OptimizerConfig config_;
  std::vector<ParameterSlice> slices_;
  std::vector<Stored> counted_;  // of the gradients, the values that are counted here
  std::vector<std::unique_ptr<Update>> updates_;
  std::vector<std::vector<std::size_t>> of_update_;  // numbers of the slices of each
  std::vector<std::size_t> copies_;  // of slices with values that another owner counts, whose update reads the maximum of all
  Tensor state_, squares_, maxima_, total_, limits_;
};

}  // namespace octet::optim
