#pragma once

#include "octet/health/family.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// throughput, slow_rank, memory, disk, checkpoint_age, data_repeated: the machine and the files around a run. They depend on times, so
/// they differ between repetitions of a run, but not between readings of its record.
class MachineRules final : public Family {
 public:
  MachineRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void take(const telemetry::RanksEvent&, Alerts&) override;
  void take(const telemetry::MachineEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void memory(const telemetry::MachineEvent&, Alerts&);
  void disk(const telemetry::MachineEvent&, Alerts&);
  double forecast(std::int64_t step) const;
  void checkpoint(const telemetry::MachineEvent&, Alerts&);
  double checkpoint_interval() const;
  void data(const telemetry::MachineEvent&, Alerts&);

  const std::int64_t steps_, checkpoint_steps_;
  const double checkpoint_seconds_;
  Alarm throughput_, slow_rank_, memory_, disk_, checkpoint_, data_;
  Window recent_rates_, rates_, seconds_, free_, free_steps_;
  double slow_since_;  // time, below 0 while it is not slow
  double held_ = 0;    // bytes, of the last step
  std::int64_t slowest_ = -1, times_slowest_ = 0;
};

}  // namespace octet::health
