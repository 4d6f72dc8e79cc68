#include "octet/models/deepseek_v3/hugging_face.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/deepseek_v2/hugging_face.hpp"

namespace octet::models {
namespace {

constexpr std::int64_t most_kept = 64;

ModelShape read_deepseek_v3(const json::Fields& config) {
  if (config.text_or("scoring_func", "sigmoid") != "sigmoid") config.refuse("scoring_func", "\"sigmoid\"");
  if (config.text_or("topk_method", "noaux_tc") != "noaux_tc") config.refuse("topk_method", "\"noaux_tc\"");
  ModelShape s = read_deepseek("deepseek_v3", config);
  s.latent.pairs = config.boolean_or("rope_interleave", true) ? ops::RopePairs::neighbours : ops::RopePairs::halves;
  ExpertsShape& e = s.experts;
  e.score = ops::Routing::Score::sigmoid, e.biased = true;
  e.normalize = config.boolean_or("norm_topk_prob", true);
  e.groups = config.integer_or("n_group", 1, 1, e.number);
  e.kept_groups = config.integer_or("topk_group", 1, 1, e.groups);
  s.kept_layers = config.integer_or("num_nextn_predict_layers", 0, 0, most_kept);
  return s;
}

void write_deepseek_v3(const ModelShape& s, json::Value& config) {
  write_deepseek(s, config);
  const ExpertsShape& e = s.experts;
  const std::int64_t ahead = s.of_files().kept_layers;
  config.set("scoring_func", "sigmoid").set("topk_method", "noaux_tc").set("norm_topk_prob", e.normalize);
  config.set("n_group", e.groups).set("topk_group", e.kept_groups).set("num_nextn_predict_layers", ahead);
  config.set("rope_interleave", s.latent.pairs == ops::RopePairs::neighbours);
}

// Modules that predict further tokens and do not train are blocks behind all that do.
bool keeps(const ModelShape& s, std::string_view name) {
  for (std::int64_t i = s.all_layers(); i < s.all_layers() + s.kept_layers; ++i)
    if (name.starts_with(format("model.layers.{}.", i))) return true;
  return false;
}

}  // namespace

HuggingFaceFormat deepseek_v3_hugging_face() {
  return {.architecture = "DeepseekV3ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_deepseek_v3,
          .write = write_deepseek_v3,
          .weights = deepseek_weights,
          .keeps = keeps};
}

}  // namespace octet::models
