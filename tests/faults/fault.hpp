#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/step_hook.hpp"

namespace octet::faults {

/// How an operand kept its values: SQNR [dB] of all values but the damaged one, and NaN where it was not measured.
struct Damage {
  double sqnr_before = NAN, sqnr = NAN;  // of the same tensor without and with the damaged value
};

/// Does harm to a run whose trainer does not know of it.
class Disturbance : public train::StepHook {
 public:
  /// Whether the harm was done. A campaign refuses runs in which it was not.
  virtual bool done() const = 0;
  virtual Damage damage() const { return {}; }
};

/// The place of a fault in a run.
struct Target {
  std::int64_t step = 0;  // the first one that is disturbed
  int layer = 0;
};

/// One fault: a row of the table.
struct Fault {
  std::string name, what;
  std::vector<std::string> recipes{};  // under which it is injected; empty: every one
  /// The tensor with its operand that alerts should name, by its layer; "" if the fault has none.
  std::function<std::string(int layer)> tensor = [](int) { return std::string(); };
  std::function<std::unique_ptr<Disturbance>(const Target&)> disturbance{};  // none: a setting, below
  std::function<void(train::RunConfig&)> configure = [](train::RunConfig&) {};
  std::int64_t from_step = -1;  // -1: as the campaign says
  bool from_clipping = false;   // delays count from the step in which the layer's scale first clips
  int ranks = 1;
  bool scored = true;  // false: a setting whose effect is reported
};

/// All faults, in the order of the table.
const std::vector<Fault>& faults();
/// Throws ConfigError, with all names, if there is none of that name.
const Fault& fault(const std::string& name);

}  // namespace octet::faults
