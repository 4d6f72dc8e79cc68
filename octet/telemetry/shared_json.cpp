#include "octet/telemetry/shared_json.hpp"

#include "octet/base/text.hpp"

namespace octet::telemetry {

json::Value memory_json(const MemoryUse& memory) {
  json::Object categories;
  for (const auto& c : memory.categories) categories.push_back({c.name, c.bytes});
  return json::Object{{"categories", std::move(categories)}, {"peak", memory.peak}};
}

MemoryUse memory_use(const json::Fields& f) {
  MemoryUse memory;
  const json::Fields categories = f.object("categories");
  for (const auto& member : categories.members()) memory.categories.push_back({member.name, categories.count(member.name)});
  memory.peak = f.count("peak");
  return memory;
}

RunState run_state(const json::Fields& f, std::string_view name) {
  for (const RunState s : {RunState::running, RunState::finished, RunState::stopped, RunState::diverged})
    if (f.text(name) == to_text(s)) return s;
  f.refuse(name, "running, finished, stopped or diverged");
}

}  // namespace octet::telemetry
