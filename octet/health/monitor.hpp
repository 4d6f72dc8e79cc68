#pragma once

#include <memory>

#include "octet/health/family.hpp"

namespace octet::health {

/// All rules over the record of a run. Its decisions are a pure function of the events, in their order: it reads no clock and no file. A
/// reader of metrics.jsonl that passes each event to another Monitor gets the same alerts.
class Monitor {
 public:
  Monitor(const AlertsConfig&, const Subject&);

  /// The alerts that this event fires, most often none. Alerts of a record themselves fire nothing.
  std::vector<telemetry::AlertEvent> take(const telemetry::Event&);
  /// All windows, of bounded size: a few KiB, and about 25 numbers per quantizer.
  void visit_state(StateVisitor&);

 private:
  struct WatchedFamily {
    const char* name;  // of its state
    std::unique_ptr<Family> rules;
  };
  bool enabled_;
  std::vector<WatchedFamily> parts_;
};

}  // namespace octet::health
