#include "octet/models/registry.hpp"

#include <algorithm>

#include "octet/models/deepseek_moe/deepseek_moe.hpp"
#include "octet/models/deepseek_v2/deepseek_v2.hpp"
#include "octet/models/deepseek_v2/hugging_face.hpp"
#include "octet/models/deepseek_v3/deepseek_v3.hpp"
#include "octet/models/deepseek_v3/hugging_face.hpp"
#include "octet/models/gpt2/gpt2.hpp"
#include "octet/models/gpt2/hugging_face.hpp"
#include "octet/models/mistral/mistral.hpp"
#include "octet/models/mistral/hugging_face.hpp"
#include "octet/models/smollm3/smollm3.hpp"
#include "octet/models/smollm3/hugging_face.hpp"
#include "octet/models/granite/granite.hpp"
#include "octet/models/granite/hugging_face.hpp"
#include "octet/models/olmo2/olmo2.hpp"
#include "octet/models/olmo2/hugging_face.hpp"
#include "octet/models/phi3/phi3.hpp"
#include "octet/models/phi3/hugging_face.hpp"
#include "octet/models/gemma3/gemma3.hpp"
#include "octet/models/gemma3/hugging_face.hpp"
#include "octet/models/llama/llama.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/mixtral/mixtral.hpp"
#include "octet/models/mixtral/hugging_face.hpp"
#include "octet/models/olmoe/olmoe.hpp"
#include "octet/models/olmoe/hugging_face.hpp"
#include "octet/models/qwen2/qwen2.hpp"
#include "octet/models/qwen2/hugging_face.hpp"
#include "octet/models/qwen3/qwen3.hpp"
#include "octet/models/qwen3/hugging_face.hpp"
#include "octet/models/qwen3_moe/qwen3_moe.hpp"
#include "octet/models/qwen3_moe/hugging_face.hpp"

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

// Differences of families with rotary positions and gated MLPs.
struct Abilities {
  bool experts = false, latent = false, ahead = false, norms_of_all_heads = false;
};

ModelFamily rotary(std::string_view name, std::vector<ModelSize> (*sizes)(),
                   std::unique_ptr<Model> (*make)(const ModelShape&, const ModelOptions&, scaling::Precision&), HuggingFaceFormat format,
                   GgufFormat gguf, const Abilities& can = {}) {
  return {name, sizes, make, std::move(format), true, true, true, true, can.experts, can.latent, can.ahead, can.norms_of_all_heads, gguf};
}

Registry& registry() {
  static Registry all = [] {
    Registry r;
    r.add(rotary("llama", models::llama_sizes, models::make_llama, models::llama_hugging_face(), {"llama", true}));
    r.add(rotary("qwen2", models::qwen2_sizes, models::make_qwen2, models::qwen2_hugging_face(), {"qwen2"}));
    r.add(rotary("qwen3", models::qwen3_sizes, models::make_qwen3, models::qwen3_hugging_face(), {"qwen3"}));
    r.add({"gpt2", models::gpt2_sizes, models::make_gpt2, models::gpt2_hugging_face(), false, true, true, false});
    r.add(rotary("mistral", models::mistral_sizes, models::make_mistral, models::mistral_hugging_face(), {"llama", true}));
    r.add(rotary("smollm3", models::smollm3_sizes, models::make_smollm3, models::smollm3_hugging_face(), {"smollm3", true}));
    r.add(rotary("granite", models::granite_sizes, models::make_granite, models::granite_hugging_face(), {"granite", true}));
    r.add(rotary("olmo2", models::olmo2_sizes, models::make_olmo2, models::olmo2_hugging_face(), {"olmo2"}, {.norms_of_all_heads = true}));
    r.add(rotary("phi3", models::phi3_sizes, models::make_phi3, models::phi3_hugging_face(), {"phi3"}));
    r.add(rotary("gemma3_text", models::gemma3_sizes, models::make_gemma3, models::gemma3_hugging_face(), {"gemma3"}));
    r.add(rotary("qwen3_moe", models::qwen3_moe_sizes, models::make_qwen3_moe, models::qwen3_moe_hugging_face(), {}, {.experts = true}));
    r.add(rotary("olmoe", models::olmoe_sizes, models::make_olmoe, models::olmoe_hugging_face(), {},
                 {.experts = true, .norms_of_all_heads = true}));
    r.add(rotary("mixtral", models::mixtral_sizes, models::make_mixtral, models::mixtral_hugging_face(), {}, {.experts = true}));
    r.add(rotary("deepseek_moe", models::deepseek_moe_sizes, models::make_deepseek_moe, {}, {}, {.experts = true}));
    r.add(rotary("deepseek_v2", models::deepseek_v2_sizes, models::make_deepseek_v2, models::deepseek_v2_hugging_face(), {},
                 {.experts = true, .latent = true}));
    r.add(rotary("deepseek_v3", models::deepseek_v3_sizes, models::make_deepseek_v3, models::deepseek_v3_hugging_face(), {},
                 {.experts = true, .latent = true, .ahead = true}));
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

namespace {

// The rules of a router: ops::route_forward.
void require_experts(const ModelShape& s) {
  const ExpertsShape& e = s.experts;
  if (!e) return;
  if (!model_family(s.family).experts)
    throw ConfigError(
        format("model.experts = {}: models of the family {} have none; leave it out, or choose another model.family", e.number, s.family));
  if (e.width < 1) throw ConfigError(format("model.expert_hidden must be at least 1, got {}", e.width));
  if (e.chosen < 1 || e.chosen > e.number)
    throw ConfigError(format("model.experts_per_token = {} must be between 1 and model.experts = {}", e.chosen, e.number));
  constexpr std::int64_t most = 1024, most_groups = 64;  // of ops::route_forward
  if (e.number > most) throw ConfigError(format("model.experts = {} must be at most {}", e.number, most));
  if (e.groups < 1 || e.groups > most_groups || e.number % e.groups != 0)
    throw ConfigError(
        format("model.router_groups = {} must be between 1 and {}, and divide model.experts = {}", e.groups, most_groups, e.number));
  if (e.groups > 1 && e.groups == e.number && e.score == ops::Routing::Score::sigmoid)
    throw ConfigError(format("model.router_groups = {}: with model.router_score = \"sigmoid\", a group has at least 2 of the {} experts",
                             e.groups, e.number));
  if (e.kept_groups < 1 || e.kept_groups > e.groups || e.number / e.groups * e.kept_groups < e.chosen)
    throw ConfigError(format(
        "model.router_kept_groups = {} must be between 1 and model.router_groups = {}, with at least model.experts_per_token = {} of "
        "the {} experts",
        e.kept_groups, e.groups, e.chosen, e.number));
}

// The shapes of ops::LatentHeads and of the projections.
void require_latent(const ModelShape& s) {
  const LatentShape& l = s.latent;
  const bool latent = model_family(s.family).latent;
  if (latent != bool(l))
    throw ConfigError(format("model.latent_rank = {}: models of the family {} {}", l.rank, s.family,
                             latent ? "have latents; set it to at least 1" : "have none; leave it out, or choose another model.family"));
  if (!latent) return;
  if (s.kv_heads != s.heads)
    throw ConfigError(
        format("model.kv_heads = {}: heads from latents have keys of their own; set it to model.heads = {}", s.kv_heads, s.heads));
  if (l.turned < 2 || l.turned % 2 != 0 || l.turned > s.head_dim)
    throw ConfigError(format("model.rotary_width = {} must be even, and at most model.head_width = {}", l.turned, s.head_dim));
  if (l.value_width < 2 || l.value_width % 2 != 0)
    throw ConfigError(format("model.value_width = {} must be even and at least 2", l.value_width));
}

void require_ahead(const ModelShape& s, const ModelOptions& options) {
  if (s.mtp_depth == 0) return;
  if (s.mtp_depth < 0 || s.mtp_depth > most_ahead)
    throw ConfigError(format("model.mtp_depth = {} must be between 0 and {}", s.mtp_depth, most_ahead));
  if (!model_family(s.family).ahead)
    throw ConfigError(format("model.mtp_depth = {}: models of the family {} predict no further tokens; leave it out, or choose deepseek_v3",
                             s.mtp_depth, s.family));
  if (!(options.mtp_loss > 0)) throw ConfigError(format("model.mtp_loss = {} must be above 0", options.mtp_loss));
}

}  // namespace

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
  require_experts(s), require_latent(s), require_ahead(s, options);
  require_recompute(options, s.layers);
  check(!options.partition->divides() || model_family(s.family).divides, "model: the family {} does not divide its models", s.family);
  return model_family(s.family).make(s, options, precision);
}

}  // namespace octet::models
