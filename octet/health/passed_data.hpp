#pragma once

#include <vector>

#include "octet/tensor/state.hpp"

namespace octet::health {

/// Data that a run passes over: before step s that of n steps, as often as it comes to s.
class PassedData {
 public:
  /// The data of steps `first` to `last`, as the run has had it so far, is passed over before step `first`.
  void add(std::int64_t first, std::int64_t last) {
    double steps = double(last - first + 1);
    std::vector<double> at, n;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if (at_[i] <= double(first)) at.push_back(at_[i]), n.push_back(steps_[i]);
      else if (at_[i] <= double(last)) steps += steps_[i];  // within the new passage
    }
    at.push_back(double(first)), n.push_back(steps);
    if (at.size() > most) at.erase(at.begin()), n.erase(n.begin());
    at_ = std::move(at), steps_ = std::move(n);
  }
  /// Steps whose data is passed over before `step`.
  std::int64_t before(std::int64_t step) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) sum += at_[i] == double(step) ? std::int64_t(steps_[i]) : 0;
    return sum;
  }
  void visit_state(StateVisitor& v) {
    v.state("at", at_), v.state("steps", steps_);
    if (v.restoring()) steps_.resize(at_.size(), 0);
  }

 private:
  static constexpr std::size_t most = 64;
  std::vector<double> at_, steps_;  // an entry per roll-back, of the last ones
};

}  // namespace octet::health
