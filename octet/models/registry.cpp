#include "octet/models/registry.hpp"

#include <algorithm>

#include "octet/models/gpt2/gpt2.hpp"
#include "octet/models/gpt2/hugging_face.hpp"
#include "octet/models/llama/llama.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/qwen2.hpp"
#include "octet/models/qwen2/hugging_face.hpp"
#include "octet/models/qwen3/qwen3.hpp"
#include "octet/models/qwen3/hugging_face.hpp"

namespace octet::models {
namespace {

// The families and their sizes.
struct Registry {
  std::vector<ModelFamily> families;
  std::vector<ModelSize> sizes;

  void add(ModelFamily family) {
    if (family.sizes != nullptr)
      for (auto& size : family.sizes()) sizes.push_back(std::move(size));
    families.push_back(std::move(family));
  }
};

Registry& registry() {
  static Registry all = [] {
    Registry r;
    r.add({"llama", models::llama_sizes, models::make_llama, models::llama_hugging_face(), true, true, true, {"llama", true}});
    r.add({"qwen2", models::qwen2_sizes, models::make_qwen2, models::qwen2_hugging_face(), true, true, true, {"qwen2"}});
    r.add({"qwen3", models::qwen3_sizes, models::make_qwen3, models::qwen3_hugging_face(), true, true, true, {"qwen3"}});
    r.add({"gpt2", models::gpt2_sizes, models::make_gpt2, models::gpt2_hugging_face(), false, false, false});
    return r;
  }();
  return all;
}

template <class Entry>
bool has(const std::vector<Entry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
}

// The entry called `name`; otherwise a ConfigError that lists the names.
template <class Entry>
const Entry& find(const std::vector<Entry>& entries, std::string_view key, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  const std::string near = nearest_of(name, names);
  throw ConfigError(format("{} = \"{}\" does not exist{}; there are {}", key, printable(name),
                           near.empty() ? "" : "; did you mean \"" + near + "\"?", joined(names)));
}

void require_recompute(const ModelOptions& options, std::int64_t layers) {
  const std::int64_t n = options.recompute_layers;
  if (n < 0 || n > layers)
    throw ConfigError(format("model.recompute_layers = {} must be between 0 (all blocks) and model.layers = {}", n, layers));
  if (n > 0 && !options.recompute.any())
    throw ConfigError(format("model.recompute_layers = {} has nothing to recompute: set model.recompute too, or leave it out", n));
}

}  // namespace

const std::vector<ModelFamily>& model_families() { return registry().families; }

void register_model_family(ModelFamily family) {
  check(!family.name.empty() && family.make != nullptr, "register_model_family: a family needs a name and a function that makes models");
  check(!has(registry().families, family.name), "register_model_family: there is a family \"{}\" already", family.name);
  if (family.sizes != nullptr)
    for (const auto& size : family.sizes())
      check(!has(registry().sizes, size.name), "register_model_family: there is a size \"{}\" already", size.name);
  registry().add(std::move(family));
}

const ModelFamily& model_family(std::string_view name) { return find(model_families(), "model.family", name); }
const ModelSize& named_size(std::string_view name) { return find(registry().sizes, "model.size", name); }
const ModelShape& model_size(std::string_view name) { return named_size(name).shape; }

std::unique_ptr<Model> make_model(const ModelShape& s, const ModelOptions& options, scaling::Precision& precision) {
  const auto positive = [](std::string_view key, std::int64_t value) {
    if (value < 1) throw ConfigError(format("model.{} must be at least 1, got {}", key, value));
  };
  positive("width", s.width), positive("layers", s.layers), positive("heads", s.heads), positive("kv_heads", s.kv_heads);
  positive("head_width", s.head_dim), positive("hidden", s.hidden), positive("vocabulary", s.vocabulary),
      positive("context", s.max_sequence);
  if (s.heads % s.kv_heads != 0)
    throw ConfigError(format("model.heads = {} must be a multiple of model.kv_heads = {}", s.heads, s.kv_heads));
  if (s.head_dim % 2 != 0)
    throw ConfigError(
        format("model.width = {}: each of the {} heads (model.heads) has {} columns, which must be even", s.width, s.heads, s.head_dim));
  require_recompute(options, s.layers);
  check(!options.partition->divides() || model_family(s.family).divides, "model: the family {} does not divide its models", s.family);
  return model_family(s.family).make(s, options, precision);
}

}  // namespace octet::models
