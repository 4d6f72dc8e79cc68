#include <cmath>

#include "octet/base/error.hpp"
#include "octet/watch/answers.hpp"
#include "octet/watch/around.hpp"
#include "octet/watch/first_movers.hpp"

// Incidents, and the steps around one.

namespace octet::watch {
namespace {

using json::Array, json::Object, json::Value;

constexpr std::int64_t reach = 20, window = std::int64_t(4) << 20;
constexpr std::size_t most_listed = 200, most_movers = 20;

Object incident_object(const Incident& i) {
  return {{"step", i.step}, {"time", number_json(i.time)}, {"kind", i.kind}, {"path", i.path}, {"text", i.text}, {"remedy", i.remedy}};
}

// Scales of the steps before `step` are the reference.
Array movers_array(const WatchedRun& run, const std::vector<telemetry::ScalesEvent>& scales, std::int64_t step) {
  std::vector<telemetry::ScalesEvent> complete;
  std::size_t quiet = 0;
  for (const auto& e : scales) {
    if (e.amax.size() != run.facts().quantizers.size()) continue;
    complete.push_back(e);
    quiet += e.step < step - 3;  // the cause may be some steps before the incident
  }
  Array out;
  for (const Mover& m : first_movers(complete, quiet, most_movers)) {
    const auto& q = run.facts().quantizers[m.tensor];
    out.push_back(Object{{"tensor", m.tensor},
                         {"path", q.path},
                         {"operand", q.operand},
                         {"step", m.step},
                         {"bits", number_json(m.bits)},
                         {"deviations", number_json(m.deviations)}});
  }
  return out;
}

Value one_incident(const WatchedRun& run, const StoredIncident& stored) {
  const Incident& incident = stored.incident;
  const Around around = read_around(run.metrics_path(), stored.offset, incident.step, reach, window);
  Array steps, others;
  for (const auto& e : around.steps)
    steps.push_back(Object{{"step", e.step},
                           {"loss", number_json(e.loss)},
                           {"loss_z", number_json(e.loss_z)},
                           {"grad_norm", number_json(e.grad_norm)},
                           {"grad_norm_z", number_json(e.grad_norm_z)},
                           {"lr", number_json(e.learning_rate)},
                           {"loss_scale", number_json(e.loss_scale)},
                           {"skipped", e.skipped}});
  for (const auto& e : around.incidents) others.push_back(incident_object(e));
  Object o = incident_object(incident);
  o.insert(o.end(),
           {{"steps", std::move(steps)}, {"nearby", std::move(others)}, {"movers", movers_array(run, around.scales, incident.step)}});
  return o;
}

}  // namespace

Value incidents_answer(const WatchedRun& run, const Target& target) {
  const auto& incidents = run.history().incidents();
  const std::int64_t seen = run.history().incidents_seen(), oldest = seen - std::int64_t(incidents.size());
  if (target.query.contains("incident")) {
    if (incidents.empty()) throw ConfigError("this run has no incidents");
    return one_incident(run, incidents[std::size_t(number_of(target, "incident", 0, oldest, seen - 1) - oldest)]);
  }
  Array list;
  for (std::int64_t i = seen - 1; i >= oldest && list.size() < most_listed; --i) {
    Object o = incident_object(incidents[std::size_t(i - oldest)].incident);
    o.insert(o.begin(), {"incident", i});
    list.push_back(std::move(o));
  }
  return Object{{"seen", seen}, {"incidents", std::move(list)}};
}

}  // namespace octet::watch
