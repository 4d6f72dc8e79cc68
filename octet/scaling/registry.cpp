#include <algorithm>
#include <utility>

#include "octet/scaling/block128/block128.hpp"
#include "octet/scaling/current/current.hpp"
#include "octet/scaling/delayed/delayed.hpp"
#include "octet/scaling/global/global.hpp"
#include "octet/scaling/mxfp8/mxfp8.hpp"
#include "octet/scaling/none/none.hpp"
#include "octet/scaling/rowwise/rowwise.hpp"

namespace octet::scaling {
namespace {

// Names of the same scheme in other libraries.
std::string name_used_here(std::string_view other) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"tensorwise", "current"}, {"per-tensor", "current"}, {"hybrid", "current"}, {"blockwise", "block128"},
      {"deepseek", "block128"},  {"per-row", "rowwise"},    {"mx", "mxfp8"},       {"mxfp8_e4m3", "mxfp8"}};
  for (const auto& [theirs, ours] : names)
    if (other == theirs) return std::string(ours);
  return "";
}

std::vector<RecipeEntry>& table() {
  using namespace scaling;
  static std::vector<RecipeEntry> all = {
      {"fp32", "FP32 everywhere: the reference", make_fp32, false, {}},
      {"bf16", "BF16 operands, FP32 sums: the baseline", make_bf16, false, {}},
      {"fp16", "FP16 operands and activations, FP32 sums; needs loss scaling", make_fp16, false, {}},
      {"delayed",
       "per-tensor scale from a history of maxima; E4M3 forward, E5M2 backward",
       make_delayed,
       true,
       {"format", "history", "algorithm", "margin", "calibration"}},
      {"current", "per-tensor scale from its own maximum; E4M3 forward, E5M2 backward", make_current, true, {"format"}},
      {"rowwise", "per-row power-of-two scale; E4M3", make_rowwise, true, {"format", "scale"}},
      {"block128", "1x128 and 128x128 blocks, power-of-two scales; E4M3", make_block128, true, {"format", "scale"}},
      {"mxfp8", "1x32 blocks, E8M0 scales; E4M3", make_mxfp8, true, {"format"}},
      {"global",
       "one scale for the whole model: shows why per-tensor scaling is needed",
       make_global,
       false,
       {"format", "calibration", "unscaled"}},
  };
  return all;
}

}  // namespace

const std::vector<RecipeEntry>& recipes() { return table(); }

void register_recipe(RecipeEntry recipe) {
  check(!recipe.name.empty() && recipe.make != nullptr, "register_recipe: a recipe needs a name and a function that makes it");
  for (const auto& entry : recipes()) check(entry.name != recipe.name, "register_recipe: there is a recipe \"{}\" already", recipe.name);
  table().push_back(std::move(recipe));
}

bool has_narrow_range(std::string_view name) {
  const auto& all = recipes();
  const auto it = std::find_if(all.begin(), all.end(), [&](const RecipeEntry& entry) { return entry.name == name; });
  return it != all.end() && it->options.empty() && it->make({})->activations() == DType::f16;
}

std::vector<std::string> compared_recipes() {
  std::vector<std::string> names;
  for (const auto& entry : recipes())
    if (entry.compared) names.emplace_back(entry.name);
  return names;
}

// Recipes without a scale per tensor lend attention those of its own maxima.
AttentionRecipes attention_recipes(std::string_view recipe) { return {recipe == "delayed" ? "delayed" : "current", "delayed"}; }

std::unique_ptr<Recipe> make_recipe(std::string_view name, const RecipeOptions& options) {
  std::vector<std::string_view> names;
  for (const auto& entry : recipes()) {
    if (entry.name == name) return entry.make(options);
    names.push_back(entry.name);
  }
  const std::string near = name_used_here(name).empty() ? nearest_of(name, names) : name_used_here(name);
  throw ConfigError(format("recipe \"{}\" does not exist{}; recipes are {}", printable(name),
                           near.empty() ? "" : "; did you mean \"" + near + "\"?", joined(names)));
}

}  // namespace octet::scaling
