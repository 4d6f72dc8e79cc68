#include "octet/watch/incident.hpp"

#include "octet/base/text.hpp"
#include "octet/telemetry/run_link.hpp"

namespace octet::watch {
namespace {

constexpr std::size_t most_text = 4096;

Incident cut(Incident i) {
  for (std::string* text : {&i.kind, &i.path, &i.text, &i.remedy}) *text = shortened(std::move(*text), most_text);
  return i;
}

}  // namespace

std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
  return text.substr(0, end) + "...";
}

std::optional<Incident> as_incident(const telemetry::Event& event) {
  if (const auto* e = std::get_if<telemetry::IncidentEvent>(&event))
    return cut({.step = e->step, .time = e->time, .kind = telemetry::kind_of(*e), .path = e->path, .text = e->text});
  if (const auto* e = std::get_if<telemetry::AlertEvent>(&event))
    return cut({.step = e->step, .time = e->time, .kind = telemetry::kind_of(*e), .path = e->path, .text = e->text, .remedy = e->remedy});
  if (const auto* e = std::get_if<telemetry::RecoveryEvent>(&event)) {
    const std::string why = e->rule.empty() ? "" : format("; because of {} in step {}", e->rule, e->alert_step);
    return cut({.step = e->step, .time = e->time, .kind = telemetry::kind_of(*e), .path = e->path, .text = e->text + why});
  }
  return std::nullopt;
}

}  // namespace octet::watch
