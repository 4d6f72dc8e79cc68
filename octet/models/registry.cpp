#include "octet/models/registry.hpp"

#include "octet/models/gpt2/gpt2.hpp"
#include "octet/models/gpt2/hugging_face.hpp"
#include "octet/models/llama/llama.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/qwen2/qwen2.hpp"
#include "octet/models/qwen2/hugging_face.hpp"

namespace octet {
namespace {

const std::vector<ModelSize>& all_sizes() {
  static const std::vector<ModelSize> all = [] {
    std::vector<ModelSize> out;
    for (const auto& family : model_families())
      for (auto& size : family.sizes()) out.push_back(std::move(size));
    return out;
  }();
  return all;
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

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> all = {
      {"llama", models::llama_sizes, models::make_llama, models::llama_hugging_face()},
      {"qwen2", models::qwen2_sizes, models::make_qwen2, models::qwen2_hugging_face()},
      {"gpt2", models::gpt2_sizes, models::make_gpt2, models::gpt2_hugging_face()},
  };
  return all;
}

const ModelFamily& model_family(std::string_view name) { return find(model_families(), "model.family", name); }
const ModelShape& model_size(std::string_view name) { return find(all_sizes(), "model.size", name).shape; }

std::unique_ptr<Model> make_model(const ModelShape& s, const ModelOptions& options, Precision& precision) {
  const auto positive = [](std::string_view key, std::int64_t value) {
    if (value < 1) throw ConfigError(format("model.{} must be at least 1, got {}", key, value));
  };
  positive("width", s.width), positive("layers", s.layers), positive("heads", s.heads), positive("kv_heads", s.kv_heads);
  positive("head_dim", s.head_dim), positive("hidden", s.hidden), positive("vocabulary", s.vocabulary),
      positive("max_sequence", s.max_sequence);
  if (s.heads % s.kv_heads != 0)
    throw ConfigError(format("model.heads = {} must be a multiple of model.kv_heads = {}", s.heads, s.kv_heads));
  if (s.head_dim % 2 != 0)
    throw ConfigError(
        format("model.width = {}: each of the {} heads (model.heads) has {} columns, which must be even", s.width, s.heads, s.head_dim));
  require_recompute(options, s.layers);
  return model_family(s.family).make(s, options, precision);
}

}  // namespace octet
