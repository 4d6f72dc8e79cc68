#pragma once

#include <limits>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/ops/adamw/adamw.hpp"
#include "octet/optim/level.hpp"
#include "octet/optim/schedule.hpp"
#include "octet/tensor/parameter_slice.hpp"
#include "octet/tensor/state.hpp"

namespace octet::optim {

struct AdamWConfig {
  double learning_rate = 3e-3;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  double max_grad_norm = 1.0;
  Level level = Level::O0;
  std::optional<Storage> master, gradients, m, v;  // of weight matrices, their gradients and moments; none: as the level says
  bool allow_unsafe = false;
  bool offload = false;  // on a GPU: the moments in the host's memory
  ScheduleConfig schedule;

  void fields(config::FieldVisitor&);

  /// How each variable is stored: as its key says, or as the level does.
  StateStorage storage() const;
};

/// The largest loss and gradient norm of a step that is applied.
struct StepLimits {
  float loss = std::numeric_limits<float>::infinity(), gradient_norm = std::numeric_limits<float>::infinity();
};

/// AdamW over a model's parameters, with clipping of the global gradient norm. Weight decay acts on matrices, not on norms and biases.
/// Everything that changes from step to step is in device memory; a step whose loss, gradient norm or any quantized value is not
/// finite, or whose loss or norm exceeds a limit, changes nothing but the device's skip flag.
class AdamW {
 public:
  /// Allocates the moments of these slices. Their parameters must have storage and outlive this.
  AdamW(Stream&, const AdamWConfig&, std::vector<ParameterSlice>);

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
  /// f32 [n, 2], or empty: {descale, max} of each moment with a scale per tensor. Where slices are parts, it must become the
  /// maxima of all parts after apply().
  const Tensor& scalars() const { return scalars_; }
  /// f32 [1] on the device: not 0 when the last step was skipped.
  Tensor skip() const { return state_.rows(ops::adamw_step_skip, 1); }
  /// i64 [1] on the device: number of applied updates.
  Tensor updates() const { return {state_.f32() + ops::adamw_step_updates, {1}, DType::i64}; }
  /// The scalars of the last step. Waits for it.
  ops::AdamWStep last(Stream& stream) const { return *HostCopy(stream, state_).as<ops::AdamWStep>(); }

  /// The updated parameters, or parts of them, and the moments of each.
  const std::vector<ParameterSlice>& slices() const { return slices_; }
  const std::vector<ops::Moments>& moments() const { return moments_; }
  /// The moments of every parameter (codes, and scales where they have some), and the scalars of the last step.
  void visit_state(StateVisitor&);

  const AdamWConfig& config() const { return config_; }

 private:
  void allocate_moments(Stream&);
  void place(Stream&);

  AdamWConfig config_;
  std::vector<ParameterSlice> slices_;
  std::vector<ops::Moments> moments_;
  std::vector<Stored> gradients_;
  std::vector<Stored> counted_;  // of these, the values that are counted here
  /// Numbers of slices with values that another owner counts, and with a moment's scale per tensor, which holds all values.
  std::vector<std::size_t> copies_;
  std::vector<Tensor> places_;  // of slices of a part: see ops::AdamWParameter
  Tensor state_, squares_, maxima_, total_, scalars_, limits_;
};

}  // namespace octet::optim
