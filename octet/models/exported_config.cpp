#include "octet/models/exported_config.hpp"

#include "octet/json/fields.hpp"
#include "octet/models/quantization_config.hpp"
#include "octet/models/registry.hpp"

namespace octet::models {
namespace {

const char* name_of(DType dtype) { return dtype == DType::f32 ? "float32" : "bfloat16"; }

json::Value without(const json::Value& object, std::string_view key) {
  json::Object members = *object.object();
  std::erase_if(members, [&](const json::Member& m) { return m.name == key; });
  return members;
}

json::Value new_config(const ModelShape& shape, const HuggingFaceFormat& format, const Companions& companions) {
  json::Value config = json::Object();
  config.set("architectures", json::Array{format.architecture}).set("model_type", shape.family);
  format.write(shape, config);
  // Without them transformers' defaults would name tokens of other vocabularies.
  const auto id = [](std::optional<std::int64_t> token) { return token ? json::Value(*token) : json::Value(); };
  const SpecialTokens special = special_tokens(companions);
  config.set("bos_token_id", id(special.begin)).set("eos_token_id", id(special.end));
  return config;
}

// Losses of routers and limits belong to a run, not to the folder.
bool same_function(const ModelShape& there, const ModelShape& shape) {
  ModelShape trained = shape.of_files();
  trained.experts.balance = there.experts.balance, trained.experts.limit = there.experts.limit;
  return there == trained;
}

}  // namespace

json::Value exported_config(const ModelShape& shape, const WeightForm& form, const Companions& companions,
                            const std::vector<std::string>& ignored) {
  const HuggingFaceFormat& format = model_family(shape.family).hugging_face;
  json::Value config = companions.config.empty() ? new_config(shape, format, companions)
                                                 : json::parse({.text = companions.config, .file = "config.json", .limits = config_limits});
  if (!companions.config.empty() && !same_function(format.read(json::Fields(config, "config.json")), shape))
    throw ConfigError(
        octet::format("{}: describes another model than the {} that is exported; export without it", "config.json", shape.family));
  const json::Value* architectures = config.find("architectures");
  if (architectures == nullptr || architectures->is_null()) config.set("architectures", json::Array{format.architecture});
  config = without(config, quantization_key);
  const char* const dtype = name_of(form.dtype);
  // transformers renamed the key: a file that has the new one only keeps it alone.
  if (config.find("dtype") != nullptr) config.set("dtype", dtype);
  if (config.find("dtype") == nullptr || config.find("torch_dtype") != nullptr) config.set("torch_dtype", dtype);
  if (form.has_codes()) config.set(quantization_key, quantization_config(form, ignored));
  return config;
}

}  // namespace octet::models
