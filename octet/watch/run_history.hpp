#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "octet/telemetry/event.hpp"
#include "octet/watch/curve.hpp"
#include "octet/watch/incident.hpp"
#include "octet/watch/tensor_history.hpp"

namespace octet::watch {

/// Limits on the memory of one run's history.
struct HistoryLimits {
  std::size_t curve_points = 2048;
  std::size_t tensor_cells = std::size_t(1) << 20;  // of scales, and as many of health
  std::size_t incidents = 1000, samples = 100;      // the last ones
};

/// An incident, and the offset of its line in metrics.jsonl, where the steps around it are.
struct StoredIncident {
  Incident incident;
  std::int64_t offset = 0;
};

/// Measures of TensorHistory `scales`, and of `health`.
enum ScaleMeasure : std::size_t { scale_amax, scale_scale, scale_measures };
enum HealthMeasure : std::size_t {
  health_headroom,
  health_saturated,
  health_flushed,
  health_sqnr,
  health_nonfinite,
  health_spread,
  health_lossy,
  health_measures
};

/// A value that an event adds to a curve.
struct CurveValue {
  const char* curve;
  double value;  // NaN: not finite
};
std::vector<CurveValue> curve_values(const telemetry::Event&);

/// A run's events in bounded memory: curves and tensors keep the minimum and the maximum of every bucket of steps.
class RunHistory {
 public:
  explicit RunHistory(std::size_t tensors, const HistoryLimits& = {});

  /// Adds an event; `offset` is that of its line. A list without one entry per tensor throws DataError.
  void take(telemetry::Event&&, std::int64_t offset);
  void clear();

  /// By name: those of the metrics (octet/telemetry/metric.hpp) that the run has.
  const std::map<std::string, Curve, std::less<>>& curves() const { return curves_; }
  const TensorHistory& scales() const { return scales_; }
  const TensorHistory& health() const { return health_; }
  const std::deque<StoredIncident>& incidents() const { return incidents_; }
  std::int64_t incidents_seen() const { return incidents_seen_; }  // all, also those beyond the limit
  const std::deque<telemetry::SampleEvent>& samples() const { return samples_; }
  const std::optional<telemetry::StepEvent>& last_step() const { return last_step_; }
  const std::optional<telemetry::EvalEvent>& last_eval() const { return last_eval_; }
  const std::optional<telemetry::RanksEvent>& last_ranks() const { return last_ranks_; }
  const std::optional<telemetry::SharedScalesEvent>& last_shared_scales() const { return last_shared_scales_; }
  const std::optional<telemetry::ExpertsEvent>& last_experts() const { return last_experts_; }
  const std::optional<telemetry::MachineEvent>& last_machine() const { return last_machine_; }
  const std::optional<telemetry::GpusEvent>& last_gpus() const { return last_gpus_; }
  const std::optional<telemetry::HealthEvent>& last_health() const { return last_health_; }
  const std::optional<telemetry::EndEvent>& end() const { return end_; }
  std::int64_t skipped() const { return skipped_; }
  /// How often each rank was the slowest.
  const std::vector<std::int64_t>& slowest_counts() const { return slowest_counts_; }
  /// Median of the last steps; NaN before the first.
  double typical_step_seconds() const;

 private:
  void add(const telemetry::StepEvent&);
  void add(const telemetry::ScalesEvent&);
  void add(telemetry::HealthEvent&&);
  void add(const telemetry::RanksEvent&);
  void add(telemetry::SharedScalesEvent&&);
  void add(telemetry::SampleEvent&&);
  void add(Incident&&, std::int64_t offset);
  void add(std::string_view curve, std::int64_t step, double value);

  HistoryLimits limits_;
  std::map<std::string, Curve, std::less<>> curves_;
  TensorHistory scales_, health_;
  std::deque<StoredIncident> incidents_;
  std::deque<telemetry::SampleEvent> samples_;
  std::int64_t incidents_seen_ = 0, skipped_ = 0;
  std::optional<telemetry::StepEvent> last_step_;
  std::optional<telemetry::EvalEvent> last_eval_;
  std::optional<telemetry::RanksEvent> last_ranks_;
  std::optional<telemetry::SharedScalesEvent> last_shared_scales_;
  std::optional<telemetry::ExpertsEvent> last_experts_;
  std::optional<telemetry::MachineEvent> last_machine_;
  std::optional<telemetry::GpusEvent> last_gpus_;
  std::optional<telemetry::HealthEvent> last_health_;
  std::optional<telemetry::EndEvent> end_;
  std::vector<std::int64_t> slowest_counts_;
  std::deque<double> recent_seconds_;
};

}  // namespace octet::watch
