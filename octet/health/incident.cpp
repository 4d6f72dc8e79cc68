#include "octet/health/incident.hpp"

#include "octet/health/text_state.hpp"

namespace octet::health {

void Incident::visit_state(StateVisitor& v) {
  auto is_open = std::int64_t(open), at = std::int64_t(action), has_risen = std::int64_t(rises);
  v.count("open", is_open, {.most = 1}), v.count("rung", at, {.most = recovery_actions}), v.count("rises", has_risen, {.most = 1});
  v.state("alert_step", alert_step), v.state("first", first);
  v.state("since", since), v.state("calm", calm);
  visit_text(v, "rule", rule), visit_text(v, "path", path), visit_texts(v, "layers", layers);
  if (v.restoring()) open = is_open != 0, action = RecoveryAction(at), rises = has_risen != 0;
}

std::string layer_of(const std::string& path, std::span<const std::string> layers) {
  std::string found;
  for (const std::string& layer : layers)
    if (path.starts_with(layer) && (path.size() == layer.size() || path[layer.size()] == '.') && layer.size() > found.size()) found = layer;
  return found;
}

}  // namespace octet::health
