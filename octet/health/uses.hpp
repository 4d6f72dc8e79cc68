#pragma once

#include <vector>

#include "octet/health/recovery_config.hpp"
#include "octet/tensor/state.hpp"

namespace octet::health {

/// When an action was used, in steps that the run has made (a number that never falls, unlike that of the step).
class Uses {
 public:
  void add(std::int64_t now, const ActionLimit& limit) {
    times_.push_back(double(now));
    if (times_.size() > std::size_t(limit.most)) times_.erase(times_.begin());
  }
  bool used_up(std::int64_t now, const ActionLimit& limit) const { return count(now, limit.within) >= limit.most; }
  /// Uses of the last `steps` steps.
  std::int64_t count(std::int64_t now, std::int64_t steps) const {
    std::int64_t n = 0;
    for (const double t : times_) n += now - std::int64_t(t) < steps;
    return n;
  }
  void visit_state(StateVisitor& v) { v.state("times", times_); }

 private:
  std::vector<double> times_;  // at most ActionLimit::most
};

}  // namespace octet::health
