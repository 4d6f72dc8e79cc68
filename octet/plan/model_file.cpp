#include "octet/plan/model_file.hpp"

#include "octet/base/check.hpp"
#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/config/attributes.hpp"
#include "octet/config/read.hpp"
#include "octet/models/registry.hpp"

namespace octet::plan {

void ModelFile::fields(config::FieldVisitor& v) {
  constexpr config::Range count{.at_least = 0, .at_most = 1e9};
  v.field("layers", layers, "blocks", {.at_least = 0, .at_most = 10'000});
  v.field("width", width, "columns of the residual stream", count);
  v.field("heads", heads, "heads of queries", count);
  v.field("kv_heads", kv_heads, "heads of keys and values; 0: heads", count);
  v.field("head_width", head_width, "columns of a head; 0: width / heads", count);
  v.field("hidden", hidden, "columns of a dense MLP", count);
  v.field("vocabulary", vocabulary, "tokens", count);
  v.field("tied", tied, "head and embedding are one matrix");
  v.field("gated", gated, "an MLP has three matrices, else two");
  v.field("attention_parameters", attention_parameters, "of one block's attention; 0: as heads say", {.at_least = 0});
  v.field("score_width", score_width, "columns of queries and values, averaged; 0: heads x head_width", {.at_least = 0});
  v.field("experts", experts, "routed experts per block; 0: a dense model", count);
  v.field("experts_per_token", experts_per_token, "routed experts that a token uses", count);
  v.field("shared_experts", shared_experts, "experts that every token uses", count);
  v.field("expert_hidden", expert_hidden, "columns of an expert", count);
  v.field("dense_layers", dense_layers, "first blocks without experts", count);
  for (const char* key : {"experts_per_token", "shared_experts", "expert_hidden", "dense_layers"})
    v.idle(key, experts == 0, "experts = 0: the model is dense");
}

PlannedModel ModelFile::model() const {
  for (const auto& [key, value] : {std::pair("layers", layers), {"width", width}, {"heads", heads}, {"vocabulary", vocabulary}})
    if (value == 0) throw ConfigError(format("--model: the file must set {}", key));
  if (hidden == 0 && (experts == 0 || dense_layers > 0)) throw ConfigError("--model: the file must set hidden, the columns of dense MLPs");
  if (head_width == 0 && width % heads != 0)
    throw ConfigError(format("--model: width = {} is not a multiple of heads = {}; set head_width", width, heads));
  if (kv_heads > 0 && heads % kv_heads != 0)
    throw ConfigError(format("--model: heads = {} is not a multiple of kv_heads = {}", heads, kv_heads));
  if (experts > 0 && (experts_per_token == 0 || experts_per_token > experts || expert_hidden == 0 || dense_layers > layers))
    throw ConfigError(format("--model: experts = {} needs experts_per_token from 1 to {}, expert_hidden, and at most {} dense_layers",
                             experts, experts, layers));
  PlannedModel out;
  out.shape = {.family = "file",
               .width = width,
               .layers = layers,
               .heads = heads,
               .kv_heads = kv_heads > 0 ? kv_heads : heads,
               .head_dim = head_width > 0 ? head_width : width / heads,
               .hidden = hidden,
               .vocabulary = vocabulary,
               .tied = tied};
  out.gated = gated, out.attention = attention_parameters, out.score_width = score_width;
  out.experts = {
      .count = experts, .per_token = experts_per_token, .shared = shared_experts, .hidden = expert_hidden, .dense_layers = dense_layers};
  return out;
}

PlannedModel model_named(const std::string& name_or_file) {
  std::string names;
  for (const NamedModel& m : large_models()) {
    if (m.name == name_or_file) return m.model;
    names += (names.empty() ? "" : ", ") + m.name;
  }
  for (const models::ModelFamily& family : models::model_families())
    for (const models::ModelSize& size : family.sizes != nullptr ? family.sizes() : std::vector<models::ModelSize>())
      if (size.name == name_or_file) return planned_model(size.shape);
  if (!exists(name_or_file))
    throw ConfigError(format("--model {}: neither a file nor one of {} or a named size of model.size", printable(name_or_file), names));
  ModelFile file;
  const config::Origins origins = config::read_toml_file(name_or_file, file);
  for (const std::string& sentence : config::idle_options(file, ModelFile{}, origins)) log::warn("{}", sentence);
  return file.model();
}

}  // namespace octet::plan
