#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/value.hpp"
#include "octet/telemetry/report/sections.hpp"
#include "octet/telemetry/report/words.hpp"

namespace octet::telemetry::report {
namespace {

struct Setting {
  std::string key, value;
};

/// The members of nested objects as "a.b.c" and their value.
void flatten(const json::Value& value, const std::string& prefix, std::vector<Setting>& out) {
  const json::Object* members = value.object();
  if (!members) {
    out.push_back({prefix, value.text() ? *value.text() : value.dump(json::Layout::line, json::Invalid::replace)});
    return;
  }
  for (const auto& member : *members) flatten(member.value, prefix.empty() ? member.name : prefix + "." + member.name, out);
}

std::vector<Setting> settings_of(const RunFacts& run) {
  std::vector<Setting> out;
  try {
    flatten(json::parse({.text = run.config_json, .limits = {.bytes = std::size_t(32) << 20}}), "", out);
  } catch (const DataError&) {
    out.push_back({"", run.config_json});  // written by hand: shown unchanged
  }
  return out;
}

const std::string* value_of(const std::vector<Setting>& settings, const std::string& key) {
  for (const auto& s : settings)
    if (s.key == key) return &s.value;
  return nullptr;
}

void pair(Markup& m, const std::string& key, const std::string& value) {
  const auto row = m.in("tr");
  m.element("th", key, {{"scope", "row"}, {"class", "code"}});
  m.element("td", value, {{"class", "code"}});
}

void open_details(Markup& m, const std::string& name, const std::string& about) {
  const auto summary = m.in("summary");
  m.element("span", name, {{"class", "name"}});
  m.element("span", about, {{"class", "soft"}});
}

void write_machine(Markup& m, const RunFacts& run) {
  const auto details = m.in("details", {{"open", "open"}});
  open_details(m, "Machine and model", run.machine.cpu);
  const auto table = m.in("table", {{"class", "pairs"}});
  pair(m, "cpu", run.machine.cpu);
  pair(m, "threads", std::to_string(run.machine.threads));
  pair(m, "gemm compute", run.machine.gemm_compute);
  pair(m, "gemm limit", scaled_text(run.machine.gemm_limit_flops) + "FLOP/s");
  pair(m, "model", model_name(run.model));
  pair(m, "parameters", grouped(run.model.parameters));
  pair(m, "layers, width, hidden", format("{}, {}, {}", run.model.layers, run.model.width, run.model.hidden));
  pair(m, "heads, key-value heads", format("{}, {}", run.model.heads, run.model.kv_heads));
  pair(m, "vocabulary, context", format("{}, {}", grouped(run.model.vocabulary), grouped(run.model.context)));
  pair(m, "tokens per step", grouped(run.tokens_per_step));
  pair(m, "work per step", scaled_text(run.flops_per_step) + "FLOP");
}

}  // namespace

void write_configuration(Markup& m, const Study& study) {
  if (study.groups.empty()) return;
  const auto section = m.in("section");
  m.element("h2", "Machine and configuration");
  const RunFacts& first = study.groups[0].first().facts;
  const auto settings = settings_of(first);
  write_machine(m, first);
  {
    const auto details = m.in("details");
    open_details(m, first.name, "configuration");
    const auto table = m.in("table", {{"class", "pairs"}});
    for (const auto& s : settings) pair(m, s.key, s.value);
  }
  for (const Group& group : study.groups)
    for (const RunRecord* run : group.runs) {
      if (&run->facts == &first) continue;
      const auto details = m.in("details");
      open_details(m, run->facts.name, "where it differs from " + first.name);
      const auto table = m.in("table", {{"class", "pairs"}});
      for (const auto& s : settings_of(run->facts))
        if (const std::string* other = value_of(settings, s.key); !other || *other != s.value) pair(m, s.key, s.value);
    }
}

}  // namespace octet::telemetry::report
