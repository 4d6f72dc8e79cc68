#include "octet/health/alarm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "octet/base/text.hpp"

namespace octet::health {

Alarm::Alarm(std::string_view name, const AlertsConfig& config, std::size_t subjects)
    : rule_(&rule(name)), threshold_(config.threshold(*rule_)), calm_(subjects, double(rule_->rest)), since_(double(rule_->rest)) {}

bool Alarm::fires(bool holds) {
  const double excess = holds ? 1 : 0;
  return fires(std::span(&excess, 1)).has_value();
}

std::optional<std::size_t> Alarm::fires(std::span<const double> excess, std::span<const std::size_t> order) {
  if (!enabled()) return std::nullopt;
  const double rest = double(rule_->rest);
  const bool silent = since_ < rest;
  std::optional<std::size_t> chosen;
  holding_ = 0;
  for (std::size_t place = 0; place < calm_.size(); ++place) {
    const std::size_t i = order.empty() ? place : order[place];
    if (!(excess[i] >= 1)) {
      calm_[i] = std::min(calm_[i] + 1, rest);
      continue;
    }
    ++holding_;
    if (calm_[i] >= rest && (!chosen || (order.empty() && excess[i] > excess[*chosen]))) chosen = i;
    calm_[i] = 0;
  }
  if (silent) chosen.reset();
  since_ = chosen ? 0 : std::min(since_ + 1, rest);
  return chosen;
}

telemetry::AlertEvent Alarm::event(const std::string& path, double value, const std::string& text) const {
  return {.rule = rule_->name,
          .severity = rule_->severity,
          .path = path,
          .value = value,
          .threshold = threshold_,
          .window = rule_->window,
          .text = text,
          .remedy = rule_->remedy};
}

void Alarm::visit_state(StateVisitor& v) {
  const std::size_t subjects = calm_.size();
  v.state("calm", calm_), v.state("since", since_);
  if (v.restoring()) calm_.resize(subjects, double(rule_->rest));
}

void Alerts::add(const Alarm& alarm, const std::string& path, double value, const std::string& text, const std::string& remedy) {
  events_.push_back(alarm.event(path, value, text));
  if (!remedy.empty()) events_.back().remedy = remedy;
  events_.back().step = step_, events_.back().time = time_;
}

std::string digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace octet::health
