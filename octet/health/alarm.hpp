#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/health/alerts_config.hpp"
#include "octet/tensor/state.hpp"

namespace octet::health {

/// One rule at work: compares with the threshold, and makes one alert of one cause. It watches `subjects` (tensors, ranks, or one for the
/// run). A subject that fired is silent until its condition has not held for AlertRule::rest observations. Subjects whose condition begins
/// within AlertRule::rest observations after an alert belong to that alert.
class Alarm {
 public:
  Alarm(std::string_view rule, const AlertsConfig&, std::size_t subjects = 1);

  bool enabled() const { return threshold_ > 0; }
  double threshold() const { return threshold_; }
  std::size_t window() const { return std::size_t(rule_->window); }
  std::size_t subjects() const { return calm_.size(); }

  /// Whether this observation of a rule with one subject is an alert.
  bool fires(bool holds);
  /// An observation of all subjects: a condition holds where excess >= 1. Of those that begin to hold the first in `order` fires, or, where
  /// that is empty, the one with the most excess.
  std::optional<std::size_t> fires(std::span<const double> excess, std::span<const std::size_t> order = {});
  /// Subjects whose condition held in the last observation.
  std::size_t holding() const { return holding_; }

  /// Without step and time, which Alerts adds.
  telemetry::AlertEvent event(const std::string& path, double value, const std::string& text) const;
  void visit_state(StateVisitor&);

 private:
  const AlertRule* rule_;
  double threshold_;
  std::vector<double> calm_;  // observations since the condition held, per subject; at most AlertRule::rest
  double since_;              // the last alert, in observations, at most AlertRule::rest
  std::size_t holding_ = 0;
};

/// Collects the alerts of one event.
class Alerts {
 public:
  Alerts(std::int64_t step, double time) : step_(step), time_(time) {}
  /// `remedy`: instead of the rule's, where the subject decides which help.
  void add(const Alarm&, const std::string& path, double value, const std::string& text, const std::string& remedy = "");
  std::vector<telemetry::AlertEvent> take() { return std::move(events_); }

 private:
  std::int64_t step_;
  double time_;
  std::vector<telemetry::AlertEvent> events_;
};

/// Three significant digits: "0.00123", "1.3e+06".
std::string digits(double x);

}  // namespace octet::health
