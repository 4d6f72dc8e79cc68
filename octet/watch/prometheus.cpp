#include "octet/watch/prometheus.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/quantization_loss.hpp"

namespace octet::watch {
namespace {

// A label's value: backslash, quote and newline are escaped; other control characters are shown as printable() does.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string sample(double x) { return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "+Inf" : "-Inf") : shortest(x); }

/// The last events of a run that have metrics.
std::vector<telemetry::Event> last_events(const Glance& glance) {
  std::vector<telemetry::Event> out;
  const auto add = [&](const auto& event) {
    if (event) out.emplace_back(*event);
  };
  add(glance.step), add(glance.eval), add(glance.health);
  for (const auto& [kind, event] : glance.others) out.push_back(event);
  return out;
}

/// NaN where no event has it: no sample is written.
double last_value(const telemetry::Metric& metric, const std::vector<telemetry::Event>& events) {
  for (const telemetry::Event& event : events)
    if (const std::optional<double> x = metric.of(event)) return *x;
  return NAN;
}

double most_lost(const WatchedRun& run) {
  double out = NAN;
  if (!run.glance().health) return out;
  for (const float lost : telemetry::below_rounding(*run.glance().health, run.facts().quantizers)) out = std::fmax(out, double(lost));
  return out;
}

/// One that is not a metric of events.
struct Gauge {
  const char *name, *help;
  double (*value)(const WatchedRun&);
};
constexpr Gauge own_gauges[] = {
    {"octet_step", "Optimizer steps done.",
     [](const WatchedRun& run) { return run.glance().step ? double(run.glance().step->step) : NAN; }},
    {"octet_planned_steps", "Planned optimizer steps; 0 if time limits the run.",
     [](const WatchedRun& run) { return double(run.facts().steps); }},
    {"octet_sqnr_below_rounding_db_max", "Largest distance of a tensor's SQNR below that of rounding alone in dB.", most_lost},
    {"octet_idle_seconds", "Seconds since the last event was written.", [](const WatchedRun& run) { return run.idle_seconds(); }},
};

constexpr std::array<Condition, 7> conditions = {Condition::running,  Condition::stalled, Condition::silent,  Condition::crashed,
                                                 Condition::finished, Condition::stopped, Condition::diverged};

}  // namespace

std::string prometheus_text(Runs& runs) {
  std::string out;
  std::vector<std::string> labels;
  std::vector<std::vector<telemetry::Event>> events;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs.at(i).refresh();
    labels.push_back(format("run=\"{}\",name=\"{}\",recipe=\"{}\"", i, label(runs.at(i).name()), label(runs.at(i).facts().recipe)));
    events.push_back(last_events(runs.at(i).glance()));
  }
  const auto add = [&](const char* name, const char* help, const auto& value) {
    out += format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (const double x = value(i); !std::isnan(x)) out += std::string(name) + "{" + labels[i] + "} " + sample(x) + "\n";
  };
  for (const Gauge& g : own_gauges) add(g.name, g.help, [&](std::size_t i) { return g.value(runs.at(i)); });
  for (const telemetry::Metric& m : telemetry::metrics())
    if (*m.gauge != 0) add(m.gauge, m.meaning, [&](std::size_t i) { return last_value(m, events[i]); });
  out += "# HELP octet_condition 1 for the state of the run, else 0.\n# TYPE octet_condition gauge\n";
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Condition c : conditions)
      out += "octet_condition{" + labels[i] + ",condition=\"" + to_text(c) + "\"} " + (runs.at(i).condition() == c ? "1\n" : "0\n");
  return out;
}

}  // namespace octet::watch
