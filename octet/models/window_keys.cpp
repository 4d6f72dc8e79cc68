#include "octet/models/window_keys.hpp"

#include <algorithm>

#include "octet/json/fields.hpp"

namespace octet::models {
namespace {

constexpr const char *within = "sliding_attention", *over_all = "full_attention";

std::vector<std::string> types_of(const ModelShape& s) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < s.layers; ++i) out.emplace_back(s.window.in_layer(i) ? within : over_all);
  return out;
}

}  // namespace

void read_window(const json::Fields& config, std::int64_t otherwise, ModelShape& shape) {
  const bool missing = std::ranges::none_of(config.members(), [](const json::Member& m) { return m.name == "sliding_window"; });
  shape.window.tokens = missing ? otherwise : config.integer_or("sliding_window", 0, 1, HuggingFaceLimits::positions);
}

void write_window(const ModelShape& shape, json::Value& config) {
  config.set("sliding_window", shape.window ? json::Value(shape.window.tokens) : json::Value());
}

void read_window_layers(const json::Fields& config, std::int64_t otherwise, ModelShape& shape) {
  shape.window.global_step = otherwise;
  if (!config.has("layer_types")) return;
  const std::vector<std::string> types = config.texts("layer_types");
  const auto first = std::ranges::find(types, over_all);
  shape.window.global_step = first == types.end() ? 0 : first - types.begin() + 1;
  if (types != types_of(shape))
    config.refuse("layer_types",
                  format("{} for each so many-th layer and {} for the others, of {} layers", over_all, within, shape.layers));
}

void write_window_layers(const ModelShape& shape, json::Value& config) { config.set("layer_types", json::array_of(types_of(shape))); }

}  // namespace octet::models
