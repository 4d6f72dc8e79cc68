#pragma once

#include <cmath>

#include "octet/health/recovery_config.hpp"
#include "octet/health/window.hpp"
#include "octet/telemetry/event.hpp"

namespace octet::health {

/// The largest loss and gradient norm of a step that is applied, as f32 values.
struct Limits {
  double loss = INFINITY, grad_norm = INFINITY;

  bool exceeded(double loss_now, double norm) const { return loss_now > loss || norm > grad_norm; }
};

/// Losses and gradient norms of good steps, from which the limits of the next one come:
///   loss limit = median + z max(deviation, 0.5% of the median),   norm limit = factor x median
/// over 64 steps; none before 24. The loss limit is the formula of the rule loss_spike.
class Reference {
 public:
  explicit Reference(const RecoveryConfig::Skip& config) : config_(config) {}

  /// A step that was applied. Good: its loss and norm belong to the next limits.
  void add(double loss, double grad_norm, bool good);
  Limits limits() const;
  /// Of the last losses, good or not: the median of their robust deviations above that of the good ones before each. 0 of too few.
  double level() const { return above_.full() ? above_.median() : 0; }
  /// The least median of the losses of a full window so far; a very large number before.
  double best_loss() const { return best_; }
  void visit_state(StateVisitor&);

 private:
  static constexpr std::size_t length = 64;
  RecoveryConfig::Skip config_;
  Window losses_{length}, norms_{length}, above_{losses_of_level};
  double best_ = 1e30;
};

}  // namespace octet::health
