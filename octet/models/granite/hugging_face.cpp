#include "octet/models/granite/hugging_face.hpp"

#include <cmath>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"

namespace octet::models {
namespace {

ModelShape read_granite(const json::Fields& config) {
  ModelShape shape = read_llama_like("granite", config);
  read_biases(config, BiasKeys::both, shape);
  const auto factor = [&](const char* key) { return config.number_or(key, 1, 1e-9, 1e9); };
  shape.multipliers = {.embedding = factor("embedding_multiplier"),
                       .branch = factor("residual_multiplier"),
                       .logits_divisor = factor("logits_scaling"),
                       .scores = factor("attention_multiplier")};
  return shape;
}

void write_granite(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  const Multipliers& m = shape.multipliers;
  write_biases(shape, BiasKeys::both, config);
  config.set("embedding_multiplier", m.embedding).set("residual_multiplier", m.branch).set("logits_scaling", m.logits_divisor);
  config.set("attention_multiplier", m.scores > 0 ? m.scores : 1 / std::sqrt(double(shape.head_dim)));
}

std::vector<WeightSlice> granite_weights(const ModelShape& shape) { return llama_like_weights(shape, {}); }

}  // namespace

HuggingFaceFormat granite_hugging_face() {
  return {.architecture = "GraniteForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_granite,
          .write = write_granite,
          .weights = granite_weights};
}

}  // namespace octet::models
