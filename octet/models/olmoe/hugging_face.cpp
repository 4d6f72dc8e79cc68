#include "octet/models/olmoe/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen3_moe/hugging_face.hpp"

namespace octet::models {
namespace {

// intermediate_size is the width of an expert: there are no other MLPs.
ModelShape read_olmoe(const json::Fields& config) {
  ModelShape shape = read_llama_like("olmoe", config);
  read_biases(config, BiasKeys::attention, shape);
  if (config.has("clip_qkv")) shape.clip_qkv = config.number("clip_qkv", 1e-9, 1e9);
  shape.norm_eps = config.number_or("rms_norm_eps", 1e-5, 0, 1);
  shape.experts.number = config.integer("num_experts", 1, HuggingFaceLimits::experts);
  shape.experts.width = shape.hidden;
  read_router(config, 0.01, shape.experts);
  return shape;
}

void write_olmoe(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  config.set("intermediate_size", shape.experts.width);
  write_biases(shape, BiasKeys::attention, config);
  config.set("clip_qkv", shape.clip_qkv > 0 ? json::Value(shape.clip_qkv) : json::Value());
  config.set("num_experts", shape.experts.number);
  write_router(shape.experts, config);
}

std::vector<WeightSlice> olmoe_weights(const ModelShape& shape) { return llama_like_weights(shape, {.norms_of_all_heads = true}); }

}  // namespace

HuggingFaceFormat olmoe_hugging_face() {
  return {.architecture = "OlmoeForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_olmoe,
          .write = write_olmoe,
          .weights = olmoe_weights};
}

}  // namespace octet::models
