#pragma once

#include <string>

#include "octet/telemetry/event.hpp"
#include "octet/tensor/arena.hpp"

namespace octet::train {

/// Free memory and disk space, and the newest checkpoint, as far as the rules of a run need them. It looks at most once per second and
/// otherwise repeats its answer, so that measuring in every step costs nothing.
class Surroundings {
 public:
  /// `folder`: of the run. The age of checkpoints counts from now on at the earliest.
  explicit Surroundings(std::string folder);

  /// Without step, time and epoch. A number that the system does not tell is NaN.
  telemetry::MachineEvent measure(Device);

 private:
  void look(Device);

  std::string folder_;
  double started_, looked_;  // by the machine's clock
  telemetry::MachineEvent last_{};
};

}  // namespace octet::train
