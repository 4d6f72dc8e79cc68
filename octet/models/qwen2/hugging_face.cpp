#include "octet/models/qwen2/hugging_face.hpp"

#include <algorithm>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"

namespace octet::models {
void refuse_sliding_window(const json::Fields& config, std::int64_t layers) {
  if (config.has("layer_types")) {
    const auto types = config.texts("layer_types");
    if (!std::all_of(types.begin(), types.end(), [](const std::string& t) { return t == "full_attention"; }))
      config.refuse("layer_types", "full_attention for every layer");
  } else if (config.boolean_or("use_sliding_window", false) && config.has("sliding_window") &&
             config.integer_or("max_window_layers", 28, 0, HuggingFaceLimits::positions) < layers) {
    config.refuse("use_sliding_window", "false: layers that attend within a window cannot be run");
  }
}

void write_full_attention(const ModelShape& shape, json::Value& config) {
  config.set("use_sliding_window", false).set("sliding_window", {}).set("max_window_layers", shape.layers);
}

namespace {

ModelShape read_qwen2(const json::Fields& config) {
  ModelShape shape = read_llama_like("qwen2", config);
  refuse_sliding_window(config, shape.layers);
  return shape;
}

void write_qwen2(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_full_attention(shape, config);
}

std::vector<WeightSlice> qwen2_weights(const ModelShape& shape) { return llama_like_weights(shape, {.qkv_bias = true}); }

}  // namespace

HuggingFaceFormat qwen2_hugging_face() {
  return {.architecture = "Qwen2ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_qwen2,
          .write = write_qwen2,
          .weights = qwen2_weights};
}

}  // namespace octet::models
