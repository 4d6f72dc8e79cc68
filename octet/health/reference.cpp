#include "octet/health/reference.hpp"

#include <algorithm>

namespace octet::health {

void Reference::add(double loss, double grad_norm, bool good) {
  if (losses_.size() >= fewest_values) above_.add(deviations_above(losses_, loss));
  if (!good) return;
  losses_.add(loss), norms_.add(grad_norm);
  if (losses_.full()) best_ = std::min(best_, losses_.median());
}

Limits Reference::limits() const {
  Limits out;
  if (losses_.size() < fewest_values) return out;
  if (config_.loss > 0) out.loss = double(float(losses_.median() + config_.loss * loss_deviation(losses_)));
  if (config_.grad_norm > 0) out.grad_norm = double(float(config_.grad_norm * norms_.median()));
  return out;
}

void Reference::visit_state(StateVisitor& v) {
  v.section("losses", losses_), v.section("norms", norms_), v.section("above", above_), v.state("best", best_);
}

}  // namespace octet::health
