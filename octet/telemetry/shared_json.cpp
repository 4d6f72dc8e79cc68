#include "octet/telemetry/shared_json.hpp"

#include "octet/base/text.hpp"

namespace octet {

Json memory_json(const MemoryUse& memory) {
  Json::Object categories;
  for (const auto& c : memory.categories) categories.push_back({c.name, c.bytes});
  return Json::Object{{"categories", std::move(categories)}, {"peak", memory.peak}};
}

MemoryUse memory_use(const JsonFields& f) {
  MemoryUse memory;
  const JsonFields categories = f.object("categories");
  for (const auto& member : categories.members()) memory.categories.push_back({member.name, categories.count(member.name)});
  memory.peak = f.count("peak");
  return memory;
}

RunState run_state(const JsonFields& f, std::string_view name) {
  for (const RunState s : {RunState::running, RunState::finished, RunState::stopped, RunState::diverged})
    if (f.text(name) == to_text(s)) return s;
  f.refuse(name, format("wanted running, finished, stopped or diverged, got '{}'", printable(f.text(name).substr(0, 80))));
}

}  // namespace octet
