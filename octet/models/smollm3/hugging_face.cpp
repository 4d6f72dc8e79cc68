#include "octet/models/smollm3/hugging_face.hpp"

#include <algorithm>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/hugging_face.hpp"

namespace octet::models {
namespace {

// A list of layers that rotate, 1, or do not, 0; without it, each so many-th does not.
std::vector<std::int64_t> turned_layers(const ModelShape& shape) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < shape.layers; ++i) out.push_back(shape.turns(i) ? 1 : 0);
  return out;
}

ModelShape read_smollm3(const json::Fields& config) {
  ModelShape shape = read_llama_like("smollm3", config);
  read_biases(config, BiasKeys::both, shape);
  refuse_sliding_window(config, shape.layers);
  shape.unturned_step = config.integer_or("no_rope_layer_interval", 4, 1, HuggingFaceLimits::layers);
  if (shape.unturned_step > shape.layers) shape.unturned_step = 0;
  if (!config.has("no_rope_layers")) return shape;
  const std::vector<std::int64_t> layers = config.integers("no_rope_layers", 0, 1);
  const auto first = std::ranges::find(layers, 0);
  shape.unturned_step = first == layers.end() ? 0 : first - layers.begin() + 1;
  if (layers != turned_layers(shape))
    config.refuse("no_rope_layers", format("0 for each so many-th of the {} layers, and 1 for the others", shape.layers));
  return shape;
}

void write_smollm3(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_biases(shape, BiasKeys::both, config);
  config.set("use_sliding_window", false).set("sliding_window", {});
  config.set("pad_token_id", {});  // transformers' default is outside of a small vocabulary
  config.set("no_rope_layers", json::array_of(turned_layers(shape)));
  if (shape.unturned_step > 0 && shape.unturned_step <= shape.layers) config.set("no_rope_layer_interval", shape.unturned_step);
}

std::vector<WeightSlice> smollm3_weights(const ModelShape& shape) { return llama_like_weights(shape, {}); }

}  // namespace

HuggingFaceFormat smollm3_hugging_face() {
  return {.architecture = "SmolLM3ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_smollm3,
          .write = write_smollm3,
          .weights = smollm3_weights};
}

}  // namespace octet::models
