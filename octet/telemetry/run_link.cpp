#include "octet/telemetry/run_link.hpp"

#include "octet/base/text.hpp"

namespace octet::telemetry {

std::string encoded(std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF", plain = "-._~";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || plain.find(c) != plain.npos) out += c;
    else out += {'%', hex[byte >> 4], hex[byte & 15]};
  }
  return out;
}

std::string default_watch_address() { return format("http://127.0.0.1:{}/", watch_port); }

std::string identity_of(const RunFacts& run) { return run.name + " " + run.started; }

std::string kind_of(const IncidentEvent& e) { return e.kind; }
std::string kind_of(const AlertEvent& e) { return format("{} {}", name(e.severity), e.rule); }

std::string kind_of(const RecoveryEvent& e) {
  return e.rung == "none" ? format("recovery: {} without an action", e.result) : format("recovery: {} {}", e.rung, e.result);
}

std::string incident_address(const std::string& watch_address, const RunFacts& run, std::int64_t step, const std::string& kind) {
  return format("{}#identity={}&view=Incidents&step={}&kind={}", watch_address, encoded(identity_of(run)), step, encoded(kind));
}

}  // namespace octet::telemetry
