#include "octet/scaling/precision.hpp"

#include <algorithm>

#include "octet/base/wildcard.hpp"
#include "octet/scaling/from_data.hpp"

namespace octet {
namespace {

// What the recipes in use do not read.
void idle_fields(const PrecisionConfig& c, config::FieldVisitor& v) {
  std::vector<std::string_view> read;
  for (const auto& entry : recipes())
    if (entry.name == c.recipe) read.insert(read.end(), entry.options.begin(), entry.options.end());
  c.options.idle_fields(v, read, c.recipe);
  for (const char* key : {"keep_bf16", "first", "last", "weights", "fast_accumulation", "emulation", "head"})
    v.idle(key, read.empty(), "nothing has 8 bits under " + c.recipe);
}

}  // namespace

void PrecisionConfig::fields(config::FieldVisitor& v) {
  std::vector<std::string> names;
  for (const auto& entry : recipes()) names.emplace_back(entry.name);
  v.choice("name", recipe, "scaling recipe of the linear layers", names);
  options.fields(v);
  v.field("keep_bf16", keep_bf16, "layers to keep in BF16, by path; * and ? match, as in layers.*.mlp.down");
  v.field("first", first, "blocks at the start to keep in BF16", {.at_least = 0});
  v.field("last", last, "blocks at the end to keep in BF16", {.at_least = 0});
  v.choice(
      "weights", weights,
      "8-bit codes of weights: cached from step to step in both orientations, or encoded for each GEMM, which saves 2 bytes per weight",
      {{"cached", WeightCodes::cached}, {"on_demand", WeightCodes::on_demand}}, config::OnResume::may_change);
  v.field("fast_accumulation", fast_accumulation,
          "on a GPU, forward GEMMs with per-tensor or row-wise scales sum in the tensor core's short accumulator; false: FP32 every 128 "
          "products, as backward");
  v.field("emulation", emulation,
          "on a GPU that does not multiply the recipe's codes as they are, decode them first; else such a run is refused",
          config::OnResume::may_change);
  v.choice("head", head, "precision of the projection to the vocabulary",
           {{"bf16", HeadPrecision::bf16}, {"recipe", HeadPrecision::recipe}});
  idle_fields(*this, v);
}

Precision::Precision(const PrecisionConfig& config)
    : config_(config), recipe_(make_recipe(config.recipe, config.options)), pattern_used_(config.keep_bf16.size()) {
  if (config.first < 0 || config.last < 0) throw ConfigError("recipe.first and recipe.last count blocks and must not be negative");
  rows_ = {{"embedding", 0, 0, to_text(activations()), "a lookup, no GEMM"},
           {"norm statistics, softmax, loss", 0, 0, "f32", "sums and exponentials"}};
}

std::string Precision::exemption(const Site& site) {
  for (std::size_t i = 0; i < config_.keep_bf16.size(); ++i)
    if (wildcard_match(config_.keep_bf16[i], site.path)) {
      pattern_used_[i] = true;
      return format("matches recipe.keep_bf16 \"{}\"", config_.keep_bf16[i]);
    }
  if (site.head && config_.head == HeadPrecision::bf16) return "head: recipe.head = \"bf16\"";
  if (site.layer >= 0 && site.layer < config_.first) return format("among the first {} blocks (recipe.first)", config_.first);
  if (site.layer >= 0 && site.layer >= site.layers - config_.last) return format("among the last {} blocks (recipe.last)", config_.last);
  const int multiple = recipe_->multiple_of();
  if (site.out % multiple != 0 || site.in % multiple != 0)
    return format("{} x {} is not a multiple of {}, as 8-bit GEMMs need", site.out, site.in, multiple);
  return "";
}

LinearPlan Precision::plan(const Site& site) {
  const std::string reason = exemption(site);  // asked under every recipe, so that each pattern is checked
  const bool unquantized = config_.recipe == "fp32" || config_.recipe == "bf16";
  LinearPlan plan = unquantized || reason.empty() ? recipe_->plan(site, slots_) : scaling::plan_unquantized(DType::bf16, reason);
  plan.caches_weight = config_.weights == WeightCodes::cached;
  plan.fast_forward = plan.fast_forward && config_.fast_accumulation;
  if (plan.fast_forward) plan.precision += "; fast accumulation in forward on a GPU";
  if (plan.why.empty()) plan.why = "recipe " + config_.recipe;
  rows_.push_back({site.path, site.out, site.in, plan.precision, plan.why});
  return plan;
}

void Precision::allocate(Stream& stream) {
  slots_.allocate(stream, recipe_->history_length());
  recipe_->allocate(stream, slots_);
}

void Precision::end_step(Stream& stream, const Tensor& skip) {
  recipe_->end_step(stream, slots_, skip);
  slots_.clear_health(stream);
}

void Precision::require_patterns_used() const {
  for (std::size_t i = 0; i < pattern_used_.size(); ++i) {
    if (pattern_used_[i]) continue;
    std::vector<std::string> patterns;
    for (const PlanRow& row : rows_)
      if (row.out != 0 && std::find(patterns.begin(), patterns.end(), pattern_of(row.path)) == patterns.end())
        patterns.push_back(pattern_of(row.path));
    const std::string near = nearest_of(pattern_of(config_.keep_bf16[i]), patterns);
    throw ConfigError(format("recipe.keep_bf16: \"{}\" matches no layer{}; layers are {}", printable(config_.keep_bf16[i]),
                             near.empty() ? "" : "; did you mean \"" + near + "\"?", joined(patterns)));
  }
}

std::string pattern_of(const std::string& path) {
  std::string out;
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = path.find('.', at);
    const std::string part = path.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (at == 0 ? "" : ".") + (number ? std::string("*") : part);
  }
  return out;
}

}  // namespace octet
