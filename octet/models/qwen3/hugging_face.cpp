#include "octet/models/qwen3/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/hugging_face.hpp"

namespace octet::models {
namespace {

ModelShape read_qwen3(const json::Fields& config) {
  ModelShape shape = read_llama_like("qwen3", config, {.head_dim = 128});
  read_biases(config, BiasKeys::attention, shape);
  refuse_sliding_window(config, shape.layers);
  return shape;
}

void write_qwen3(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_biases(shape, BiasKeys::attention, config);
  write_full_attention(shape, config);
}

std::vector<WeightSlice> qwen3_weights(const ModelShape& shape) { return llama_like_weights(shape, {.head_norms = true}); }

}  // namespace

HuggingFaceFormat qwen3_hugging_face() {
  return {.architecture = "Qwen3ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_qwen3,
          .write = write_qwen3,
          .weights = qwen3_weights};
}

}  // namespace octet::models
