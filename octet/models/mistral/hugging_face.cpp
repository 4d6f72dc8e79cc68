#include "octet/models/mistral/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/window_keys.hpp"

namespace octet::models {
namespace {

ModelShape read_mistral(const json::Fields& config) {
  ModelShape shape = read_llama_like("mistral", config);
  read_window(config, 4096, shape);
  return shape;
}

void write_mistral(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_window(shape, config);
}

std::vector<WeightSlice> mistral_weights(const ModelShape& shape) { return llama_like_weights(shape, {}); }

}  // namespace

HuggingFaceFormat mistral_hugging_face() {
  return {.architecture = "MistralForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_mistral,
          .write = write_mistral,
          .weights = mistral_weights};
}

}  // namespace octet::models
