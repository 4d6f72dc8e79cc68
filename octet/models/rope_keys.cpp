#include "octet/models/rope_keys.hpp"

#include <cmath>

#include "octet/json/fields.hpp"

namespace octet::models {
namespace {

using Kind = ops::RopeScaling::Kind;
constexpr double max_theta = 1e15, max_factor = 1e6;
constexpr const char* original_key = "original_max_position_embeddings";

struct Named {
  Kind kind;
  std::string_view name;
};
constexpr Named kinds[] = {{Kind::linear, "linear"}, {Kind::by_turns, "llama3"}, {Kind::yarn, "yarn"}};

// The keys of the two limits, in turns.
struct Limits {
  const char *low, *high;
};
Limits limits_of(Kind kind) {
  return kind == Kind::yarn ? Limits{"beta_slow", "beta_fast"} : Limits{"low_freq_factor", "high_freq_factor"};
}

double original_length(const json::Fields& rope) { return double(rope.integer(original_key, 1, HuggingFaceLimits::positions)); }

ops::RopeScaling read_llama3(const json::Fields& rope) {
  return {.factor = rope.number("factor", 1, max_factor),
          .low_freq_factor = rope.number("low_freq_factor", 1e-6, max_factor),
          .high_freq_factor = rope.number("high_freq_factor", 1e-6, max_factor),
          .original_max_position = original_length(rope)};
}

ops::RopeScaling read_yarn(const json::Fields& rope) {
  return {.kind = Kind::yarn,
          .factor = rope.number("factor", 1, max_factor),
          .low_freq_factor = rope.number_or("beta_slow", 1, 1e-6, max_factor),
          .high_freq_factor = rope.number_or("beta_fast", 32, 1e-6, max_factor),
          .original_max_position = original_length(rope),
          .mscale = rope.number_or("mscale", 0, 0, max_factor),
          .mscale_all_dim = rope.number_or("mscale_all_dim", 0, 0, max_factor),
          .attention_factor = rope.number_or("attention_factor", 0, 0, max_factor),
          .truncate = rope.boolean_or("truncate", true)};
}

ops::RopeScaling read_scaling(const json::Fields& rope, Kind kind) {
  if (kind == Kind::linear) return {.kind = kind, .factor = rope.number("factor", 1, max_factor)};
  const ops::RopeScaling s = kind == Kind::yarn ? read_yarn(rope) : read_llama3(rope);
  const Limits keys = limits_of(kind);
  if (s.high_freq_factor <= s.low_freq_factor) rope.refuse(keys.high, format("above {} = {}", keys.low, s.low_freq_factor));
  return s;
}

json::Value written(const ops::RopeScaling& s) {
  json::Value rope = json::Object();
  rope.set("rope_type", std::string(name_of(s.kind))).set("factor", s.factor);
  if (s.kind == Kind::linear) return rope;
  const Limits keys = limits_of(s.kind);
  rope.set(keys.low, s.low_freq_factor).set(keys.high, s.high_freq_factor);
  rope.set(original_key, std::llround(s.original_max_position));
  for (const auto& [key, value] :
       {std::pair("mscale", s.mscale), {"mscale_all_dim", s.mscale_all_dim}, {"attention_factor", s.attention_factor}})
    if (value > 0) rope.set(key, value);
  if (!s.truncate) rope.set("truncate", false);
  return rope;
}

}  // namespace

std::string_view name_of(Kind kind) {
  for (const Named& n : kinds)
    if (n.kind == kind) return n.name;
  throw ContractError("no such scaling of rotations");
}

Kind rope_kind(std::string_view name) {
  for (const Named& n : kinds)
    if (n.name == name) return n.kind;
  throw ContractError(format("no scaling of rotations is called {}", name));
}

std::string rope_text(const ModelShape& shape) {
  if (!shape.rope_scaling) return "none";
  const ops::RopeScaling& s = *shape.rope_scaling;
  if (s.kind == Kind::linear) return format("linear ({})", s.factor);
  std::string out = format("{} ({}, {}, {}, {}", name_of(s.kind), s.factor, s.low_freq_factor, s.high_freq_factor, s.original_max_position);
  if (s.kind == Kind::yarn)
    out += format(", {}, {}{}{}", s.mscale, s.mscale_all_dim, s.attention_factor > 0 ? format(", {}", s.attention_factor) : "",
                  s.truncate ? "" : ", not rounded");
  return out + ")";
}

void read_rope(const json::Fields& config, ModelShape& shape) {
  shape.rope_theta = config.number_or("rope_theta", 10000, 1, max_theta);
  const char* const key = config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!config.has(key)) return;
  read_rotation(config.object(key), shape);
}

void read_rotation(const json::Fields& rope, ModelShape& shape) {
  shape.rope_theta = rope.number_or("rope_theta", shape.rope_theta, 1, max_theta);
  const char* const type_key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text_or(type_key, rope.has("factor") ? "" : "default");
  for (const Named& n : kinds)
    if (n.name == type) shape.rope_scaling = read_scaling(rope, n.kind);
  if (!shape.rope_scaling && type != "default") rope.refuse(type_key, "default, linear, llama3 or yarn");
  if (rope.number_or("partial_rotary_factor", 1, 0, 1) != 1) rope.refuse("partial_rotary_factor", "1");
}

void write_rope(const ModelShape& shape, json::Value& config) {
  config.set("rope_theta", shape.rope_theta);
  config.set("rope_scaling", shape.rope_scaling ? written(*shape.rope_scaling) : json::Value());
}

}  // namespace octet::models
