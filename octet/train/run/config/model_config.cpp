#include "octet/train/run/config/model_config.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/text.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/registry.hpp"
#include "octet/models/rope_keys.hpp"
#include "octet/train/layout/subject.hpp"

namespace octet::train {
namespace {

constexpr auto may_change = config::OnResume::may_change;

/// The base of a new model: the named size, or the smallest one of the family.
const models::ModelSize& base_of(const ModelConfig& c) {
  const models::ModelFamily& family = c.family.empty() ? models::model_families().front() : models::model_family(c.family);
  if (!c.size.empty()) {
    const models::ModelSize& size = models::named_size(c.size);
    if (!c.family.empty() && size.shape.family != c.family)
      throw ConfigError(format("model.family = \"{}\": model.size = \"{}\" is of the family {}; leave one of them out", c.family, c.size,
                               size.shape.family));
    return size;
  }
  if (family.sizes == nullptr || family.sizes().empty())
    throw ConfigError(format("model.family = \"{}\" has no named sizes; register one, and name it with model.size", family.name));
  return models::named_size(family.sizes().front().name);
}

void set(std::int64_t& value, std::int64_t wanted) {
  if (wanted > 0) value = wanted;
}
void set(double& value, double wanted) {
  if (wanted > 0) value = wanted;
}

bool names_stretching(const ModelConfig& c) {
  return c.rope_factor > 0 || c.rope_low_frequency > 0 || c.rope_high_frequency > 0 || c.rope_original_context > 0 || c.rope_mscale > 0 ||
         c.rope_mscale_all_dim > 0;
}

/// The stretching that the key names, with the usual numbers of its kind unless the model has that kind.
void set_kind(const ModelConfig& c, models::ModelShape& s) {
  using Kind = ops::RopeScaling::Kind;
  if (c.rope_scaling == "default") return;
  if (c.rope_scaling == "none") return s.rope_scaling.reset();
  const Kind kind = models::rope_kind(c.rope_scaling);
  if (s.rope_scaling && s.rope_scaling->kind == kind) return;
  s.rope_scaling = ops::RopeScaling{.kind = kind};
  if (kind == Kind::yarn) s.rope_scaling->high_freq_factor = 32;
}

void set_rotation(const ModelConfig& c, models::ModelShape& s) {
  if (c.rope_theta == 0 && c.rope_scaling == "default" && !names_stretching(c)) return;
  if (!models::model_family(s.family).rotary)
    throw ConfigError(format("model.rope_*: models of the family {} have no rotary positions; leave these keys out", s.family));
  set(s.rope_theta, c.rope_theta);
  set_kind(c, s);
  if (!s.rope_scaling) {
    if (c.rope_scaling == "default" && names_stretching(c))
      throw ConfigError(
          "model.rope_factor and its relatives stretch rotations that this model does not stretch; set model.rope_scaling = \"llama3\" "
          "too, or \"linear\" or \"yarn\"");
    return;
  }
  ops::RopeScaling& r = *s.rope_scaling;
  set(r.factor, c.rope_factor), set(r.original_max_position, double(c.rope_original_context));
  set(r.low_freq_factor, c.rope_low_frequency), set(r.high_freq_factor, c.rope_high_frequency);
  set(r.mscale, c.rope_mscale), set(r.mscale_all_dim, c.rope_mscale_all_dim);
  if (r.high_freq_factor <= r.low_freq_factor)
    throw ConfigError(
        format("model.rope_high_frequency = {} must be above model.rope_low_frequency = {}", r.high_freq_factor, r.low_freq_factor));
}

void set_latent(const ModelConfig& c, models::ModelShape& s) {
  if (c.latent_rank == 0 && c.query_rank < 0 && c.rotary_width == 0 && c.value_width == 0) return;
  if (!models::model_family(s.family).latent)
    throw ConfigError(format("model.latent_rank and its relatives: models of the family {} have no latents; leave them out, or choose {}",
                             s.family, families_that(&models::ModelFamily::latent)));
  set(s.latent.rank, c.latent_rank), set(s.latent.turned, c.rotary_width), set(s.latent.value_width, c.value_width);
  if (c.query_rank >= 0) s.latent.query_rank = c.query_rank;
}

/// Of the layers that files have, the first ones train.
void take_kept_layers(const ModelConfig& c, models::ModelShape& s) {
  if (c.mtp_depth > s.kept_layers)
    throw ConfigError(format(
        "model.mtp_depth = {}: {}/config.json has num_nextn_predict_layers = {}, of layers that predict further tokens; set it to at "
        "most that",
        c.mtp_depth, printable(c.folder()), s.kept_layers));
  s.mtp_depth = c.mtp_depth, s.kept_layers -= c.mtp_depth;
}

/// The keys of the function that a model computes.
void set_experts(const ModelConfig& c, models::ExpertsShape& e) {
  set(e.number, c.experts), set(e.chosen, c.experts_per_token), set(e.width, c.expert_hidden), set(e.step, c.expert_step);
  if (c.shared_experts >= 0) e.shared = c.shared_experts;
  if (c.dense_layers >= 0) e.first_dense = c.dense_layers;
  using Score = ops::Routing::Score;
  if (c.router_score != "default") e.score = c.router_score == "sigmoid" ? Score::sigmoid : Score::softmax;
  if (c.router_normalize != "default") e.normalize = c.router_normalize == "yes";
  set(e.scaling, c.router_scaling), set(e.groups, c.router_groups), set(e.kept_groups, c.router_kept_groups);
  if (c.swiglu_limit >= 0) e.limit = c.swiglu_limit;
}

/// Those of losses in training, also for a model whose folder decides the rest.
void set_balance(const ModelConfig& c, nn::Balance& b) {
  using Over = nn::Balance::Over;
  if (c.router_balance != "default")
    b.over = c.router_balance == "model" ? Over::model : c.router_balance == "layer" ? Over::layer : Over::sequence;
  if (c.router_loss >= 0) b.loss = c.router_loss;
  if (c.router_z_loss >= 0) b.z_loss = c.router_z_loss;
  if (c.router_bias_rate >= 0) b.bias_rate = c.router_bias_rate;
}

/// The first key that is about experts; "" for none.
std::string key_of_experts(const ModelConfig& c) {
  const std::pair<const char*, bool> keys[] = {{"experts", c.experts > 0},
                                               {"experts_per_token", c.experts_per_token > 0},
                                               {"expert_hidden", c.expert_hidden > 0},
                                               {"shared_experts", c.shared_experts >= 0},
                                               {"dense_layers", c.dense_layers >= 0},
                                               {"expert_step", c.expert_step > 0},
                                               {"router_score", c.router_score != "default"},
                                               {"router_normalize", c.router_normalize != "default"},
                                               {"router_scaling", c.router_scaling > 0},
                                               {"router_groups", c.router_groups > 0},
                                               {"router_kept_groups", c.router_kept_groups > 0},
                                               {"router_balance", c.router_balance != "default"},
                                               {"router_loss", c.router_loss >= 0},
                                               {"router_z_loss", c.router_z_loss >= 0},
                                               {"router_bias_rate", c.router_bias_rate >= 0},
                                               {"swiglu_limit", c.swiglu_limit >= 0}};
  for (const auto& [key, is_set] : keys)
    if (is_set) return key;
  return "";
}

void require_experts(const ModelConfig& c, const models::ModelShape& s) {
  const std::string key = key_of_experts(c);
  if (!key.empty() && !models::model_family(s.family).experts)
    throw ConfigError(format(
        "model.{}: models of the family {} have no experts; leave it out, or choose a size with experts (docs/experts.md)", key, s.family));
}

/// `base` with the keys that are set.
models::ModelShape with_keys(const ModelConfig& c, const models::ModelShape& base) {
  models::ModelShape s = base;
  set(s.layers, c.layers), set(s.width, c.width), set(s.heads, c.heads), set(s.kv_heads, c.kv_heads), set(s.hidden, c.hidden);
  set(s.vocabulary, c.vocabulary), set(s.max_sequence, c.context), set(s.norm_eps, c.norm_eps);
  const bool folder_decides = !c.init.empty() && c.size.empty();
  if (c.head_width == 0 && !folder_decides && !s.latent && (s.width != base.width || s.heads != base.heads)) {
    if (s.width % s.heads != 0) throw ConfigError(format("model.width = {} must be a multiple of model.heads = {}", s.width, s.heads));
    s.head_dim = s.width / s.heads;
  }
  set(s.head_dim, c.head_width);
  if (c.heads > 0 && c.kv_heads == 0) s.kv_heads = s.latent ? s.heads : std::min(s.kv_heads, s.heads);
  if (c.tied != "default") s.tied = c.tied == "yes";
  set_rotation(c, s), set_latent(c, s);
  s.mtp_depth = c.mtp_depth;
  require_experts(c, s);
  set_experts(c, s.experts), set_balance(c, s.experts.balance);
  if (s.experts && s.experts.layers_before(s.layers) == 0)
    throw ConfigError(format("model.layers = {}: none of the blocks has experts, by model.dense_layers = {} and model.expert_step = {}",
                             s.layers, s.experts.first_dense, s.experts.step));
  return s;
}

/// Every property in which the wanted model differs from the folder's: "model.width = 128 (it has 64)".
std::string contradictions(const ModelConfig& c, const models::ModelShape& wanted, const models::ModelShape& there) {
  std::string out;
  const auto compare = [&](std::string_view key, bool is_set, const auto& mine, const auto& its) {
    if (mine == its || (!is_set && c.size.empty())) return;
    const std::string what = is_set ? format("model.{} = {}", key, mine) : format("model.size = \"{}\", whose {} is {}", c.size, key, mine);
    out += format("{}{} (it has {})", out.empty() ? "" : ", ", what, its);
  };
  compare("family", !c.family.empty(), wanted.family, there.family);
  compare("layers", c.layers > 0, wanted.layers, there.layers), compare("width", c.width > 0, wanted.width, there.width);
  compare("heads", c.heads > 0, wanted.heads, there.heads), compare("kv_heads", c.kv_heads > 0, wanted.kv_heads, there.kv_heads);
  compare("head_width", c.head_width > 0, wanted.head_dim, there.head_dim), compare("hidden", c.hidden > 0, wanted.hidden, there.hidden);
  compare("vocabulary", c.vocabulary > 0, wanted.vocabulary, there.vocabulary);
  compare("norm_eps", c.norm_eps > 0, wanted.norm_eps, there.norm_eps);
  compare("rope_theta", c.rope_theta > 0, wanted.rope_theta, there.rope_theta);
  compare("rope_scaling", c.rope_scaling != "default", models::rope_text(wanted), models::rope_text(there));
  const models::LatentShape &latent = wanted.latent, &its_latent = there.latent;
  compare("latent_rank", c.latent_rank > 0, latent.rank, its_latent.rank);
  compare("query_rank", c.query_rank >= 0, latent.query_rank, its_latent.query_rank);
  compare("rotary_width", c.rotary_width > 0, latent.turned, its_latent.turned);
  compare("value_width", c.value_width > 0, latent.value_width, its_latent.value_width);
  const models::ExpertsShape &mine = wanted.experts, &its = there.experts;
  compare("experts", c.experts > 0, mine.number, its.number);
  compare("experts_per_token", c.experts_per_token > 0, mine.chosen, its.chosen);
  compare("expert_hidden", c.expert_hidden > 0, mine.width, its.width);
  compare("shared_experts", c.shared_experts >= 0, mine.shared, its.shared);
  compare("dense_layers", c.dense_layers >= 0, mine.first_dense, its.first_dense);
  compare("expert_step", c.expert_step > 0, mine.step, its.step);
  compare("router_scaling", c.router_scaling > 0, mine.scaling, its.scaling);
  compare("router_groups", c.router_groups > 0, mine.groups, its.groups);
  const auto score = [](const models::ExpertsShape& e) {
    return std::string(e.score == ops::Routing::Score::sigmoid ? "sigmoid" : "softmax");
  };
  compare("router_score", c.router_score != "default", score(mine), score(its));
  const auto yes_or_no = [](bool x) { return std::string(x ? "yes" : "no"); };
  compare("router_normalize", c.router_normalize != "default", yes_or_no(mine.normalize), yes_or_no(its.normalize));
  compare("tied", c.tied != "default", yes_or_no(wanted.tied), yes_or_no(there.tied));
  // A named size has the longest context that was published; a folder may have a shorter one.
  if (c.context > 0) compare("context", true, wanted.max_sequence, there.max_sequence);
  return out;
}

/// The folder decides; keys may repeat it.
models::ModelShape shape_of_folder(const ModelConfig& c) {
  const models::ModelShape there = models::read_hugging_face_shape(c.folder());
  models::ModelShape wanted = there;
  if (!c.size.empty()) wanted = base_of(c).shape;
  else if (!c.family.empty()) wanted.family = models::model_family(c.family).name;
  wanted = with_keys(c, wanted);
  if (const std::string different = contradictions(c, wanted, there); !different.empty())
    throw ConfigError(format("model.init = \"{}\": {}/config.json decides the model, and contradicts {}; leave these keys out",
                             printable(c.init), printable(c.folder()), different));
  models::ModelShape shape = there;
  set_balance(c, shape.experts.balance), shape.experts.limit = wanted.experts.limit;
  take_kept_layers(c, shape);
  return shape;
}

constexpr config::Range factor{.at_least = 0, .at_most = 1e6}, coefficient{.at_least = -1, .at_most = 1e6};

void rotation_fields(ModelConfig& c, config::FieldVisitor& v) {
  v.field("rope_theta", c.rope_theta, "base of the rotary positions; 0: as the size has", {.at_least = 0, .at_most = 1e15});
  v.choice("rope_scaling", c.rope_scaling, "stretching of rotations for longer contexts; default: as the size has",
           {"default", "none", "linear", "llama3", "yarn"});
  v.field("rope_factor", c.rope_factor, "by how much the slowest rotations are stretched; 0: as the size has, or 8", factor);
  v.field("rope_low_frequency", c.rope_low_frequency,
          "turns within rope_original_context below which a rotation is stretched by the whole factor; 0: as the size has, or 1", factor);
  v.field("rope_high_frequency", c.rope_high_frequency,
          "turns within rope_original_context above which a rotation is not stretched; 0: as the size has, or 4, with yarn 32", factor);
  v.field("rope_original_context", c.rope_original_context, "context before the stretching; 0: as the size has, or 8192",
          {.at_least = 0, .at_most = 1 << 28});
  v.field("rope_mscale", c.rope_mscale, "of yarn's factor of rotated queries and keys; 0: as the size has, or 1", factor);
  v.field("rope_mscale_all_dim", c.rope_mscale_all_dim,
          "divides that factor, and with latents multiplies scores by its square; 0: as the size has, or none", factor);
}

void expert_fields(ModelConfig& c, config::FieldVisitor& v) {
  v.field("experts", c.experts, "routed experts of a layer; 0: as the size has", {.at_least = 0, .at_most = 4096});
  v.field("experts_per_token", c.experts_per_token, "of them, chosen by each token; 0: as the size has", {.at_least = 0, .at_most = 4096});
  v.field("expert_hidden", c.expert_hidden, "columns inside an expert; 0: as the size has", {.at_least = 0, .at_most = 1 << 22});
  v.field("shared_experts", c.shared_experts, "experts that every token uses; -1: as the size has", {.at_least = -1, .at_most = 4096});
  v.field("dense_layers", c.dense_layers, "first blocks without experts; -1: as the size has", {.at_least = -1, .at_most = 4096});
  v.field("expert_step", c.expert_step, "of the blocks after them, each so many-th has experts; 0: as the size has",
          {.at_least = 0, .at_most = 4096});
  v.choice("router_score", c.router_score, "function of the router's logits; default: as the size has", {"default", "softmax", "sigmoid"});
  v.choice("router_normalize", c.router_normalize, "whether the weights of a token's experts have a fixed sum; default: as the size has",
           {"default", "yes", "no"});
  v.field("router_scaling", c.router_scaling, "factor of the weights; 0: as the size has", factor);
  v.field("router_groups", c.router_groups, "equal groups of experts, of which a token chooses some first; 0: as the size has",
          {.at_least = 0, .at_most = 4096});
  v.field("router_kept_groups", c.router_kept_groups, "groups that it chooses; 0: as the size has", {.at_least = 0, .at_most = 4096});
  v.choice(
      "router_balance", c.router_balance,
      "the tokens over which router_loss balances experts: of all layers of a micro-batch, of each layer, or of each sequence; default: "
      "as the size has",
      {"default", "model", "layer", "sequence"});
  v.field("router_loss", c.router_loss, "coefficient of the loss that balances experts; -1: as the size has", coefficient);
  v.field("router_z_loss", c.router_z_loss, "coefficient of the loss of large logits of routers; -1: as the size has", coefficient);
  v.field("router_bias_rate", c.router_bias_rate,
          "step of each expert's bias towards balance, after each optimizer step; 0: no biases; -1: as the size has", coefficient);
  v.field("swiglu_limit", c.swiglu_limit,
          "in experts, the gate is at most this and the linear part is between this and its negative; 0: no limit; -1: as the size has",
          coefficient);
}

void latent_fields(ModelConfig& c, config::FieldVisitor& v) {
  v.field("latent_rank", c.latent_rank, "columns of the latent of keys and values; 0: as the size has",
          {.at_least = 0, .at_most = 1 << 20});
  v.field("query_rank", c.query_rank, "columns of the latent of queries; 0: they have none; -1: as the size has",
          {.at_least = -1, .at_most = 1 << 20});
  v.field("rotary_width", c.rotary_width, "with latents, columns of head_width that are rotated; 0: as the size has",
          {.at_least = 0, .at_most = 4096});
  v.field("value_width", c.value_width, "with latents, columns of a value head; 0: as the size has", {.at_least = 0, .at_most = 4096});
}

}  // namespace

void ModelConfig::fields(config::FieldVisitor& v) {
  v.field("size", size,
          "a named size: llama-tiny, smollm2-135m, gpt2-124m, qwen2.5-0.5b, qwen3-0.6b, llama-3.2-1b, ...; empty: the model of model.init, "
          "or the smallest size of model.family");
  v.field("family", family, format("{}; empty: the size's own, or llama", all_families()));
  v.field("layers", layers, "blocks; 0: as the size has", {.at_least = 0, .at_most = 4096});
  v.field("width", width, "columns of the residual stream; 0: as the size has", {.at_least = 0, .at_most = 1 << 20});
  v.field("heads", heads, "query heads; 0: as the size has", {.at_least = 0, .at_most = 65536});
  v.field("kv_heads", kv_heads, "key and value heads; 0: as the size has", {.at_least = 0, .at_most = 65536});
  v.field("head_width", head_width, "columns of a head; 0: width / heads where one of them is set, else as the size has",
          {.at_least = 0, .at_most = 4096});
  v.field("hidden", hidden, "columns inside the MLP; 0: as the size has", {.at_least = 0, .at_most = 1 << 22});
  v.field("vocabulary", vocabulary, "tokens; 0: as the size has", {.at_least = 0, .at_most = 1 << 24});
  v.field("context", context, "longest sequence in tokens; 0: as the size has", {.at_least = 0, .at_most = 1 << 28});
  v.field("norm_eps", norm_eps, "added to the mean square (or variance) in norms; 0: as the size has", {.at_least = 0, .at_most = 1});
  rotation_fields(*this, v);
  v.choice("tied", tied, "whether head and embedding share one matrix; default: as the size has", {"default", "yes", "no"});
  expert_fields(*this, v);
  latent_fields(*this, v);
  v.field("mtp_depth", mtp_depth,
          "further tokens that multi-token prediction layers behind the last block predict while the model trains, as DeepSeek-V3; 0: none",
          {.at_least = 0, .at_most = models::most_ahead});
  v.field("mtp_loss", mtp_loss, "factor of the mean loss of these tokens, which is added to the loss", {.above = 0, .at_most = 1000},
          may_change);
  v.idle("mtp_loss", mtp_depth == 0, "model.mtp_depth = 0 predicts no further tokens");
  v.field("recompute", recompute,
          "parts of a block that backward computes again instead of keeping them: norm, activation, mlp, attention, block", may_change);
  v.field("recompute_layers", recompute_layers,
          "blocks, from the first on, that compute these again, while the others keep everything; 0: all", {.at_least = 0, .at_most = 4096},
          may_change);
  v.field("init", init, "Hugging Face folder whose config.json decides the model, and whose weights it starts from; empty: random weights",
          may_change);
  for (const char* key : {"rope_factor", "rope_low_frequency", "rope_high_frequency", "rope_original_context"})
    v.idle(key, rope_scaling == "none", "model.rope_scaling = \"none\" stretches nothing");
  for (const char* key : {"rope_mscale", "rope_mscale_all_dim"})
    v.idle(key, rope_scaling != "default" && rope_scaling != "yarn", "model.rope_scaling is not \"yarn\"");
}

models::ModelShape ModelConfig::shape() const { return init.empty() ? with_keys(*this, base_of(*this).shape) : shape_of_folder(*this); }

std::string ModelConfig::name() const {
  if (!size.empty()) return size;
  if (init.empty()) return std::string(base_of(*this).name);
  const std::string last = std::filesystem::path(init).lexically_normal().filename().string();
  return last.empty() || last == "." ? std::filesystem::path(init).lexically_normal().parent_path().filename().string() : last;
}

}  // namespace octet::train
