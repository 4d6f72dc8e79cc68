#include "octet/telemetry/event_line.hpp"

#include "octet/base/text.hpp"
#include "octet/json/fields.hpp"
#include "octet/telemetry/list_events.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet::telemetry {
namespace {

template <class E>
json::Object head(const char* name, const E& e) {
  return {{"event", name}, {"step", e.step}, {"time", e.time}};
}

void add_preferences(json::Object& o, const PreferenceFigures& p) {
  if (!p.known()) return;
  o.insert(o.end(), {{"reward_chosen", p.chosen_reward},
                     {"reward_rejected", p.rejected_reward},
                     {"reward_margin", p.margin()},
                     {"reward_accuracy", p.accuracy},
                     {"logp_chosen", p.chosen_log_probability},
                     {"logp_rejected", p.rejected_log_probability}});
}

PreferenceFigures preferences_of(const json::Fields& f) {
  if (!f.has("reward_accuracy")) return {};
  return {.chosen_reward = f.number_or_nan("reward_chosen"),
          .rejected_reward = f.number_or_nan("reward_rejected"),
          .accuracy = f.number_or_nan("reward_accuracy"),
          .chosen_log_probability = f.number_or_nan("logp_chosen"),
          .rejected_log_probability = f.number_or_nan("logp_rejected")};
}

json::Object to_json(const StepEvent& e) {
  json::Object o = head("step", e);
  o.insert(o.end(), {{"loss", e.loss},
                     {"loss_z", e.loss_z},
                     {"grad_norm", e.grad_norm},
                     {"grad_norm_z", e.grad_norm_z},
                     {"lr", e.learning_rate},
                     {"tokens", e.tokens},
                     {"seconds", e.seconds},
                     {"tokens_per_second", e.tokens_per_second},
                     {"limit_share", e.limit_share},
                     {"param_norm", e.param_norm},
                     {"data_wait", e.data_wait},
                     {"memory", e.memory_bytes},
                     {"skipped", e.skipped}});
  if (std::isfinite(e.loss_scale)) o.push_back({"loss_scale", e.loss_scale});
  if (e.limited) o.push_back({"limited", true});
  if (e.one_token > 0) o.push_back({"one_token", e.one_token});
  add_preferences(o, e.preferences);
  return o;
}

json::Object to_json(const ScalesEvent& e) {
  json::Object o = head("scales", e);
  o.insert(o.end(),
           {{"amax", json::array_of(e.amax)}, {"scale_min", json::array_of(e.scale_min)}, {"scale_max", json::array_of(e.scale_max)}});
  return o;
}

json::Object to_json(const HealthEvent& e) {
  json::Object o = head("health", e);
  o.insert(o.end(), {{"headroom_bits", json::array_of(e.headroom_bits)},
                     {"saturated", json::array_of(e.saturated)},
                     {"flushed", json::array_of(e.flushed)},
                     {"sqnr_db", json::array_of(e.sqnr_db)},
                     {"nonfinite", json::array_of(e.nonfinite)}});
  return o;
}

json::Object to_json(const RanksEvent& e) {
  json::Object o = head("ranks", e);
  o.insert(
      o.end(),
      {{"seconds", json::array_of(e.seconds)}, {"waited", json::array_of(e.waited)}, {"slowest", e.slowest}, {"sent_bytes", e.sent_bytes}});
  return o;
}

json::Object to_json(const SharedScalesEvent& e) {
  json::Object o = head("shared_scales", e);
  o.insert(o.end(), {{"mu", json::array_of(e.mu)}, {"overflow", json::array_of(e.overflow)}, {"underflow", json::array_of(e.underflow)}});
  return o;
}

json::Object to_json(const ExpertsEvent& e) {
  json::Object o = head("experts", e);
  o.insert(o.end(), {{"experts", e.experts}, {"layers", json::array_of(e.layers)}, {"counts", json::array_of(e.counts)}});
  if (!e.bias.empty()) o.push_back({"bias", json::array_of(e.bias)});
  return o;
}

json::Object to_json(const EvalEvent& e) {
  json::Object o = head("eval", e);
  o.insert(o.end(), {{"loss", e.loss}, {"tokens", e.tokens}, {"average_loss", e.average_loss}});
  add_preferences(o, e.preferences);
  return o;
}

json::Object to_json(const SampleEvent& e) {
  json::Object o = head("sample", e);
  o.insert(o.end(), {{"prompt", e.prompt}, {"text", e.text}, {"tokens", e.tokens}, {"end", e.end}});
  return o;
}

json::Object to_json(const IncidentEvent& e) {
  json::Object o = head("incident", e);
  o.insert(o.end(), {{"kind", e.kind}, {"path", e.path}, {"text", e.text}});
  return o;
}

json::Object to_json(const MachineEvent& e) {
  json::Object o = head("machine", e);
  o.insert(o.end(), {{"memory_free", e.memory_free},
                     {"disk_free", e.disk_free},
                     {"checkpoint_bytes", e.checkpoint_bytes},
                     {"checkpoint_age", e.checkpoint_age},
                     {"epoch", e.epoch}});
  return o;
}

json::Object to_json(const AlertEvent& e) {
  json::Object o = head("alert", e);
  o.insert(o.end(), {{"rule", e.rule},
                     {"severity", name(e.severity)},
                     {"path", e.path},
                     {"value", e.value},
                     {"threshold", e.threshold},
                     {"window", e.window},
                     {"text", e.text},
                     {"remedy", e.remedy}});
  return o;
}

json::Object to_json(const RecoveryEvent& e) {
  json::Object o = head("recovery", e);
  o.insert(o.end(),
           {{"rung", e.rung}, {"result", e.result}, {"rule", e.rule}, {"path", e.path}, {"alert_step", e.alert_step}, {"text", e.text}});
  if (repeats_steps(e)) o.push_back({"back_to", e.back_to});
  if (!e.layers.empty()) o.push_back({"layers", json::array_of(e.layers)});
  return o;
}

json::Object to_json(const EndEvent& e) {
  json::Object o = head("end", e);
  o.insert(o.end(), {{"reason", e.reason},
                     {"train_loss", e.train_loss},
                     {"eval_loss", e.eval_loss},
                     {"average_loss", e.average_loss},
                     {"tokens_per_second", e.tokens_per_second},
                     {"skipped", e.skipped}});
  return o;
}

StepEvent step_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .loss = f.number_or_nan("loss"),
          .loss_z = f.number_or_nan("loss_z"),
          .grad_norm = f.number_or_nan("grad_norm"),
          .grad_norm_z = f.number_or_nan("grad_norm_z"),
          .learning_rate = f.number_or_nan("lr"),
          .tokens = f.count("tokens"),
          .seconds = f.number_or_nan("seconds"),
          .tokens_per_second = f.number_or_nan("tokens_per_second"),
          .limit_share = f.number_or_nan("limit_share"),
          .param_norm = f.number_or_nan("param_norm"),
          .data_wait = f.number_or_nan("data_wait"),
          .memory_bytes = f.count("memory"),
          .skipped = f.boolean("skipped"),
          .limited = f.has("limited") && f.boolean("limited"),
          .loss_scale = f.has("loss_scale") ? f.number_or_nan("loss_scale") : NAN,
          .one_token = f.has("one_token") ? f.number_or_nan("one_token") : 0,
          .preferences = preferences_of(f)};
}

ScalesEvent scales_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .amax = f.numbers_or_nan("amax"),
          .scale_min = f.numbers_or_nan("scale_min"),
          .scale_max = f.numbers_or_nan("scale_max")};
}

HealthEvent health_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .headroom_bits = f.numbers_or_nan("headroom_bits"),
          .saturated = f.numbers_or_nan("saturated"),
          .flushed = f.numbers_or_nan("flushed"),
          .sqnr_db = f.numbers_or_nan("sqnr_db"),
          .nonfinite = f.integers("nonfinite", 0)};
}

RanksEvent ranks_event(const json::Fields& f) {
  RanksEvent e{.step = f.count("step"),
               .time = f.number_or_nan("time"),
               .seconds = f.numbers_or_nan("seconds"),
               .waited = f.numbers_or_nan("waited"),
               .sent_bytes = f.count("sent_bytes")};
  if (e.seconds.empty()) f.refuse("seconds", "a list with an entry per rank");
  if (e.waited.size() != e.seconds.size()) f.refuse("waited", format("a list of {} entries, one per rank", e.seconds.size()));
  e.slowest = f.integer("slowest", 0, std::int64_t(e.seconds.size()) - 1);
  return e;
}

SharedScalesEvent shared_scales_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .mu = f.numbers_or_nan("mu"),
          .overflow = f.numbers_or_nan("overflow"),
          .underflow = f.numbers_or_nan("underflow")};
}

ExpertsEvent experts_event(const json::Fields& f) {
  ExpertsEvent e{.step = f.count("step"),
                 .time = f.number_or_nan("time"),
                 .experts = f.integer("experts", 1, most_stated),
                 .layers = f.integers("layers", 0),
                 .counts = f.integers("counts", 0)};
  const std::size_t all = e.layers.size() * std::size_t(e.experts);
  if (e.counts.size() != all) f.refuse("counts", format("a list of {} entries, one per layer and expert", all));
  if (f.has("bias")) e.bias = f.numbers_or_nan("bias");
  if (!e.bias.empty() && e.bias.size() != all) f.refuse("bias", format("a list of {} entries, one per layer and expert", all));
  return e;
}

/// Absent from lines of earlier versions.
double average_loss(const json::Fields& f) { return f.has("average_loss") ? f.number_or_nan("average_loss") : NAN; }

MachineEvent machine_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .memory_free = f.number_or_nan("memory_free"),
          .disk_free = f.number_or_nan("disk_free"),
          .checkpoint_bytes = f.number_or_nan("checkpoint_bytes"),
          .checkpoint_age = f.number_or_nan("checkpoint_age"),
          .epoch = f.number_or_nan("epoch")};
}

Severity severity(const json::Fields& f) {
  for (const Severity s : {Severity::info, Severity::warning, Severity::critical})
    if (f.text("severity") == name(s)) return s;
  f.refuse("severity", "info, warning or critical");
}

AlertEvent alert_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .rule = f.text("rule"),
          .severity = severity(f),
          .path = f.text("path"),
          .value = f.number_or_nan("value"),
          .threshold = f.number_or_nan("threshold"),
          .window = f.count("window"),
          .text = f.text("text"),
          .remedy = f.text("remedy")};
}

RecoveryEvent recovery_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .rung = f.text("rung"),
          .result = f.text("result"),
          .rule = f.text("rule"),
          .path = f.text("path"),
          .alert_step = f.count("alert_step"),
          .back_to = f.has("back_to") ? f.count("back_to") : -1,
          .layers = f.has("layers") ? f.texts("layers") : std::vector<std::string>(),
          .text = f.text("text")};
}

EndEvent end_event(const json::Fields& f) {
  return {.step = f.count("step"),
          .time = f.number_or_nan("time"),
          .reason = f.text("reason"),
          .train_loss = f.number_or_nan("train_loss"),
          .eval_loss = f.number_or_nan("eval_loss"),
          .tokens_per_second = f.number_or_nan("tokens_per_second"),
          .skipped = f.count("skipped"),
          .average_loss = average_loss(f)};
}

}  // namespace

std::string event_line(const Event& event) {
  return std::visit([](const auto& e) { return json::Value(to_json(e)).dump(json::Layout::line, json::Invalid::replace); }, event);
}

std::string alert_message(const AlertEvent& event, const std::string& run, const std::string& folder) {
  json::Object o = to_json(event);
  o.insert(o.end(), {{"run", run}, {"folder", folder}});
  return json::Value(std::move(o)).dump(json::Layout::line, json::Invalid::replace) + '\n';
}

namespace {

std::optional<Event> event_of(const json::Fields& f) {
  const std::string& name = f.text("event");
  if (name == "step") return step_event(f);
  if (name == "scales") return scales_event(f);
  if (name == "health") return health_event(f);
  if (name == "ranks") return ranks_event(f);
  if (name == "shared_scales") return shared_scales_event(f);
  if (name == "experts") return experts_event(f);
  if (name == "eval")
    return EvalEvent{f.count("step"),   f.number_or_nan("time"), f.number_or_nan("loss"),
                     f.count("tokens"), average_loss(f),         preferences_of(f)};
  if (name == "sample")
    return SampleEvent{f.count("step"), f.number_or_nan("time"), f.text("prompt"), f.text("text"), f.count("tokens"), f.text("end")};
  if (name == "incident") return IncidentEvent{f.count("step"), f.number_or_nan("time"), f.text("kind"), f.text("path"), f.text("text")};
  if (name == "machine") return machine_event(f);
  if (name == "alert") return alert_event(f);
  if (name == "recovery") return recovery_event(f);
  if (name == "end") return end_event(f);
  return std::nullopt;
}

}  // namespace

Event parse_event(std::string_view line, const std::string& where) {
  const json::Value object = json::parse({.text = line, .file = where, .place = json::Place::column});
  const json::Fields f(object, where);
  if (std::optional<Event> event = event_of(f)) return std::move(*event);
  f.refuse("event", "step, scales, health, ranks, shared_scales, experts, eval, sample, incident, machine, alert, recovery or end");
}

std::optional<Event> parse_known_event(std::string_view line, const std::string& where) {
  if (std::optional<Event> event = scan_list_event(line)) return event;
  const json::Value object = json::parse({.text = line, .file = where, .place = json::Place::column});
  return event_of(json::Fields(object, where));
}

}  // namespace octet::telemetry
