#pragma once

#include "octet/base/text.hpp"
#include "octet/health/alarm.hpp"
#include "octet/telemetry/run_facts.hpp"

namespace octet::health {

/// The facts of a run that rules need besides its events; they do not change while it trains.
struct Subject {
  std::vector<telemetry::QuantizerFacts> quantizers{};  // in the order of ScalesEvent and HealthEvent
  std::vector<std::string> shared_scales{};             // tensors in the order of SharedScalesEvent
  std::int64_t steps = 0;                               // planned; 0 if time limits the run
  std::int64_t checkpoint_steps = 0;                    // between checkpoints; 0: not by steps
  double checkpoint_seconds = 0;                        // the same in time; 0: not by time
};

/// Rules of one kind. They see the events of a run in the order of its record, and decide by these alone: the same events give the same
/// alerts. Their state is bounded.
class Family {
 public:
  virtual ~Family() = default;
  virtual void take(const telemetry::StepEvent&, Alerts&) {}
  virtual void take(const telemetry::ScalesEvent&, Alerts&) {}
  virtual void take(const telemetry::HealthEvent&, Alerts&) {}
  virtual void take(const telemetry::RanksEvent&, Alerts&) {}
  virtual void take(const telemetry::SharedScalesEvent&, Alerts&) {}
  virtual void take(const telemetry::ExpertsEvent&, Alerts&) {}
  virtual void take(const telemetry::EvalEvent&, Alerts&) {}
  virtual void take(const telemetry::SampleEvent&, Alerts&) {}
  virtual void take(const telemetry::IncidentEvent&, Alerts&) {}
  virtual void take(const telemetry::MachineEvent&, Alerts&) {}
  virtual void take(const telemetry::GpusEvent&, Alerts&) {}
  virtual void visit_state(StateVisitor&) = 0;
};

/// Whether it is a gradient of an activation: "dy" of linear layers, "do" to "dv" of attention.
inline bool is_gradient(const std::string& operand) { return operand.starts_with("d"); }
/// "layers.3.mlp.down.x": a tensor with its operand.
inline std::string path_of(const telemetry::QuantizerFacts& q) { return q.path + "." + q.operand; }
/// " (and 12 more tensors)", or "".
inline std::string and_more(std::size_t others) { return others == 0 ? "" : format(" (and {} more tensors)", others); }

}  // namespace octet::health
