#include "octet/telemetry/event_line.hpp"

#include "octet/base/text.hpp"
#include "octet/json/fields.hpp"

namespace octet {
namespace {

template <class E>
Json::Object head(const char* name, const E& e) {
  return {{"event", name}, {"step", e.step}, {"time", e.time}};
}

Json::Object to_json(const StepEvent& e) {
  Json::Object o = head("step", e);
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
  return o;
}

Json::Object to_json(const ScalesEvent& e) {
  Json::Object o = head("scales", e);
  o.insert(o.end(), {{"amax", json_numbers(e.amax)}, {"scale_min", json_numbers(e.scale_min)}, {"scale_max", json_numbers(e.scale_max)}});
  return o;
}

Json::Object to_json(const HealthEvent& e) {
  Json::Object o = head("health", e);
  o.insert(o.end(), {{"headroom_bits", json_numbers(e.headroom_bits)},
                     {"saturated", json_numbers(e.saturated)},
                     {"flushed", json_numbers(e.flushed)},
                     {"sqnr_db", json_numbers(e.sqnr_db)},
                     {"nonfinite", json_numbers(e.nonfinite)}});
  return o;
}

Json::Object to_json(const EvalEvent& e) {
  Json::Object o = head("eval", e);
  o.insert(o.end(), {{"loss", e.loss}, {"tokens", e.tokens}, {"average_loss", e.average_loss}});
  return o;
}

Json::Object to_json(const IncidentEvent& e) {
  Json::Object o = head("incident", e);
  o.insert(o.end(), {{"kind", e.kind}, {"path", e.path}, {"text", e.text}});
  return o;
}

Json::Object to_json(const EndEvent& e) {
  Json::Object o = head("end", e);
  o.insert(o.end(), {{"reason", e.reason},
                     {"train_loss", e.train_loss},
                     {"eval_loss", e.eval_loss},
                     {"average_loss", e.average_loss},
                     {"tokens_per_second", e.tokens_per_second},
                     {"skipped", e.skipped}});
  return o;
}

StepEvent step_event(const JsonFields& f) {
  return {.step = f.count("step"),
          .time = f.number("time"),
          .loss = f.number("loss"),
          .loss_z = f.number("loss_z"),
          .grad_norm = f.number("grad_norm"),
          .grad_norm_z = f.number("grad_norm_z"),
          .learning_rate = f.number("lr"),
          .tokens = f.count("tokens"),
          .seconds = f.number("seconds"),
          .tokens_per_second = f.number("tokens_per_second"),
          .limit_share = f.number("limit_share"),
          .param_norm = f.number("param_norm"),
          .data_wait = f.number("data_wait"),
          .memory_bytes = f.count("memory"),
          .skipped = f.boolean("skipped")};
}

ScalesEvent scales_event(const JsonFields& f) {
  return {.step = f.count("step"),
          .time = f.number("time"),
          .amax = f.numbers("amax"),
          .scale_min = f.numbers("scale_min"),
          .scale_max = f.numbers("scale_max")};
}

HealthEvent health_event(const JsonFields& f) {
  return {.step = f.count("step"),
          .time = f.number("time"),
          .headroom_bits = f.numbers("headroom_bits"),
          .saturated = f.numbers("saturated"),
          .flushed = f.numbers("flushed"),
          .sqnr_db = f.numbers("sqnr_db"),
          .nonfinite = f.counts("nonfinite")};
}

/// Absent from lines of earlier versions.
double average_loss(const JsonFields& f) { return f.has("average_loss") ? f.number("average_loss") : NAN; }

EndEvent end_event(const JsonFields& f) {
  return {.step = f.count("step"),
          .time = f.number("time"),
          .reason = f.text("reason"),
          .train_loss = f.number("train_loss"),
          .eval_loss = f.number("eval_loss"),
          .tokens_per_second = f.number("tokens_per_second"),
          .skipped = f.count("skipped"),
          .average_loss = average_loss(f)};
}

}  // namespace

std::string event_line(const Event& event) {
  return std::visit([](const auto& e) { return Json(to_json(e)).dump(); }, event);
}

Event parse_event(std::string_view line, const std::string& where) {
  const Json object = parse_json(line, where);
  const JsonFields f(object, where);
  const std::string& name = f.text("event");
  if (name == "step") return step_event(f);
  if (name == "scales") return scales_event(f);
  if (name == "health") return health_event(f);
  if (name == "eval") return EvalEvent{f.count("step"), f.number("time"), f.number("loss"), f.count("tokens"), average_loss(f)};
  if (name == "incident") return IncidentEvent{f.count("step"), f.number("time"), f.text("kind"), f.text("path"), f.text("text")};
  if (name == "end") return end_event(f);
  f.refuse("event", format("wanted step, scales, health, eval, incident or end, got '{}'", printable(name.substr(0, 80))));
}

}  // namespace octet
