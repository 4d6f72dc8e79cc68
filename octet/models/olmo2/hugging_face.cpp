#include "octet/models/olmo2/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"

namespace octet::models {
namespace {

ModelShape read_olmo2(const json::Fields& config) {
  ModelShape shape = read_llama_like("olmo2", config, {.norm_eps = 1e-5});
  read_biases(config, BiasKeys::attention, shape);
  return shape;
}

void write_olmo2(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  write_biases(shape, BiasKeys::attention, config);
}

std::vector<WeightSlice> olmo2_weights(const ModelShape& shape) {
  return llama_like_weights(shape, {.norms_of_all_heads = true, .norms = LlamaVariant::Norms::after});
}

}  // namespace

HuggingFaceFormat olmo2_hugging_face() {
  return {.architecture = "Olmo2ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_olmo2,
          .write = write_olmo2,
          .weights = olmo2_weights};
}

}  // namespace octet::models
