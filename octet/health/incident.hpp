#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "octet/health/recovery_action.hpp"
#include "octet/tensor/state.hpp"

namespace octet::health {

/// One cause that the ladder answers, from its first alert until the run was good for a while.
struct Incident {
  bool open = false;
  std::string rule, path;  // of the first alert
  std::int64_t alert_step = 0;
  bool rises = false;                            // an alert is loss_rise: the level of the loss must return, too
  std::int64_t first = 0;                        // step at which it began
  RecoveryAction action = RecoveryAction::none;  // used last
  std::int64_t since = 0;                        // when, in steps that the run has made
  std::int64_t calm = 0;                         // good steps in a row
  std::vector<std::string> layers;               // that its alerts name

  void visit_state(StateVisitor&);
};

/// The one of `layers` that the path of an alert names, by itself, an operand, its output or its parameter: "layers.3.mlp.down" of
/// "layers.3.mlp.down.x", "...down.y" and "...down.weight.grad"; "" where there is none.
std::string layer_of(const std::string& path, std::span<const std::string> layers);

}  // namespace octet::health
