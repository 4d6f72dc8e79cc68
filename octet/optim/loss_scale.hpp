#pragma once

#include <string>

#include "octet/config/fields.hpp"
#include "octet/ops/loss_scale/loss_scale.hpp"
#include "octet/tensor/state.hpp"

namespace octet::optim {

/// A factor of the loss, so that small gradients of activations stay within the range of a narrow format. The optimizer divides it out.
struct LossScaleConfig {
  /// automatic: dynamic if activations are FP16, otherwise off.
  enum class Mode : std::uint8_t { automatic, off, fixed, dynamic };
  Mode mode = Mode::automatic;
  double start = 0x1p16;
  double growth = 2, backoff = 0.5;
  std::int64_t growth_steps = 2000;
  double smallest = 1, largest = 0x1p24;

  void fields(config::FieldVisitor&);
  /// The mode of a run whose activations have this type: never automatic.
  Mode mode_for(DType activations) const;
};
std::string to_text(LossScaleConfig::Mode);
/// A loss scale with all its digits.
std::string scale_text(double scale);

/// A loss scale in device memory, so that a recorded step reads its current value.
class LossScale {
 public:
  /// `fixed`: it never moves. Throws ConfigError unless all numbers that it reads are powers of two and smallest <= start <= largest.
  LossScale(Stream&, const LossScaleConfig&, bool fixed);

  /// f32 [1]: the factor of this step's loss, and so of every stored gradient.
  Tensor scale() const { return state_.rows(0, 1); }
  /// Moves the scale after a step; skip: f32 [1], the AdamWStep's.
  void end_step(Stream&, const Tensor& skip);

  /// The scale of a step, and of the one after it.
  struct Move {
    float now = 0, next = 0;
    bool moves() const { return now != next; }
    /// "65536 -> 32768".
    std::string text() const { return scale_text(double(now)) + " -> " + scale_text(double(next)); }
  };
  /// Of this step, before end_step(); waits for it. `skip`: as in end_step().
  Move read(Stream&, float skip) const;
  /// Scale and good steps.
  void visit_state(StateVisitor& visitor) { visitor.state("state", state_); }

 private:
  ops::LossScaleRule rule_;
  Tensor state_;
};

}  // namespace octet::optim
