#include <algorithm>

#include "octet/scaling/precision.hpp"

namespace octet::scaling {
namespace {

std::vector<std::string> recipe_names(std::vector<std::string> first = {}) {
  for (const auto& entry : recipes()) first.emplace_back(entry.name);
  return first;
}

// Options that the recipes in use do not read.
void idle_fields(const PrecisionConfig& c, config::FieldVisitor& v) {
  std::vector<std::string_view> read;
  std::string names;
  bool own_format = false, eight_bits = false;
  const AttentionRecipes attention = codes_attention(c) ? attention_recipes(c.recipe) : AttentionRecipes{};
  for (const auto& entry : recipes()) {
    const bool own = entry.name == c.recipe, quantizes = !entry.options.empty();
    const bool ruled = entry.name == attention.given || entry.name == attention.made ||
                       std::any_of(c.rules.begin(), c.rules.end(), [&](const PrecisionRule& r) { return r.recipe == entry.name; });
    if (!own && !(ruled && quantizes)) continue;
    read.insert(read.end(), entry.options.begin(), entry.options.end());
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    eight_bits |= quantizes, own_format |= own && quantizes;
  }
  v.idle("format", eight_bits && !own_format, "it is about recipe.name alone, and nothing has 8 bits under " + c.recipe);
  c.options.idle_fields(v, read, names);
  for (const char* key : {"rules", "keep_bf16", "first", "last", "weights", "fast_accumulation", "emulation", "head"})
    v.idle(key, !eight_bits, "nothing has 8 bits under " + names);
}

}  // namespace

bool names_eight_bits(const PrecisionConfig& c) {
  const auto& all = recipes();
  const auto entry = std::ranges::find(all, c.recipe, &RecipeEntry::name);
  return !c.rules.empty() || codes_attention(c) || (entry != all.end() && !entry->options.empty());
}

void PrecisionRule::fields(config::FieldVisitor& v) {
  v.field("path", path, "layers that the rule is about; * and ? match, as in layers.*.mlp.down");
  v.choices("operands", operands, "operands that it is about; none: all", {"x", "w", "dy"});
  v.choice("recipe", recipe, "their precision; default: recipe.name", recipe_names({"default"}));
  v.choice("format", format, "their 8-bit format; hybrid is E4M3 for x and w and E5M2 for dy; default: the recipe's own",
           {"default", "hybrid", "e4m3", "e5m2"});
  v.choice("attention", attention, "precision of the attention of blocks that the path matches, as recipe.attention; default: not about it",
           {"default", "bf16", "fp8_forward", "fp8"});
}

void PrecisionConfig::fields(config::FieldVisitor& v) {
  v.choice("name", recipe, "scaling recipe of the linear layers", recipe_names());
  options.fields(v);
  v.list("rules", rules, "another precision for some layers or operands; the first rule that matches decides");
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
  v.choice("activations", activations,
           "activations saved for backward: as computed, or 8-bit codes (E4M3 in blocks of 1x32) of the inputs of SwiGLU and GELU and of "
           "attention's output",
           {{"bf16", SavedActivations::bf16}, {"fp8", SavedActivations::fp8}});
  v.choice(
      "attention", attention,
      "precision of attention: bf16, or products of 8-bit codes in forward alone or in forward and backward; for heads of 128 on a GPU",
      {{"bf16", AttentionPrecision::bf16}, {"fp8_forward", AttentionPrecision::fp8_forward}, {"fp8", AttentionPrecision::fp8}});
  v.choice("final", final_recipe,
           "recipe of the last steps of a run, in the place of recipe.name; bf16_forward: BF16 in forward alone; none: recipe.name stays",
           recipe_names({"none", std::string(bf16_forward)}), config::OnResume::may_change);
  v.field("final_share", final_share, "share of the steps that recipe.final has", {.above = 0, .at_most = 1}, config::OnResume::may_change);
  v.idle("final_share", final_recipe == "none", "recipe.final is \"none\"");
  idle_fields(*this, v);
}

bool has_final_part(const PrecisionConfig& c) { return c.final_recipe != "none" && c.final_recipe != c.recipe; }

namespace {

bool has_codes(const std::string& recipe, const RecipeOptions& options) { return is_fp8(make_recipe(recipe, options)->formats().forward); }

// Attention has no products of codes in backward alone.
void take_codes_from_attention(PrecisionConfig& c) {
  c.attention = AttentionPrecision::bf16;
  for (PrecisionRule& rule : c.rules)
    if (rule.attention != "default") rule.attention = "bf16";
}

PrecisionConfig with_bf16_forward(PrecisionConfig c) {
  const bool ruled = std::ranges::any_of(c.rules, [](const PrecisionRule& r) { return r.recipe != "default" && has_codes(r.recipe, {}); });
  if (!ruled && !has_codes(c.recipe, c.options))
    throw ConfigError(
        format("recipe.final = \"{}\": no linear layer has 8 bits under recipe.name = \"{}\", whose backward could keep them; "
               "choose another recipe.name, or set recipe.final = \"none\"",
               c.final_recipe, c.recipe));
  take_codes_from_attention(c);
  c.forward_values = true, c.final_recipe = "none";
  return c;
}

}  // namespace

PrecisionConfig final_part(const PrecisionConfig& c) {
  if (!has_final_part(c)) return c;
  if (c.final_recipe == bf16_forward) return with_bf16_forward(c);
  const DType own = make_recipe(c.recipe, c.options)->activations();
  PrecisionConfig out = c;
  out.recipe = c.final_recipe, out.options.format = "default";
  if (!has_codes(out.recipe, out.options)) take_codes_from_attention(out);  // the last steps have none at all
  out.final_recipe = "none";
  const DType activations = make_recipe(out.recipe, out.options)->activations();
  if (activations != own)
    throw ConfigError(format("recipe.final = \"{}\": activations are {} under it and {} under recipe.name = \"{}\"; choose another recipe",
                             c.final_recipe, activations, own, c.recipe));
  return out;
}

}  // namespace octet::scaling
