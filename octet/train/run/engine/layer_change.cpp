#include "octet/train/run/engine/layer_change.hpp"

#include <algorithm>

#include "octet/scaling/recipe.hpp"

namespace octet::train {
namespace {

constexpr std::string_view frozen_once = "frozen weights are encoded once, and only their codes are in memory (lora.rank)";

bool shards_masters(const Engine& e) { return e.parameters.shard().shards(nn::Sharded::masters); }

// Copies that are 8-bit codes are neighbours, and those that are values.
bool has_codes(const Engine& e) {
  return std::ranges::any_of(e.parameters.buckets(), [](const nn::Bucket& b) { return !b.coded.empty(); });
}

std::string about_codes(const Engine& now, const RunConfig& run) {
  return format("ranks.zero divides weights by the precision of their layers, as they travel as 8-bit codes{}",
                has_codes(now) ? "" : format(" under recovery.layers.recipe = \"{}\"", run.recovery.layers.recipe));
}

// Which parameters are neighbours, and how ranks cut them.
bool same_parts(const nn::Parameters& a, const nn::Parameters& b) {
  return std::ranges::equal(a.buckets(), b.buckets(), [](const nn::Bucket& x, const nn::Bucket& y) {
    return x.count == y.count && x.first == y.first &&
           std::ranges::equal(x.parameters, y.parameters, [](const Parameter* p, const Parameter* q) { return p->path == q->path; });
  });
}

const std::string& precision_of(const std::string& layer, const std::vector<scaling::PlanRow>& rows) {
  static const std::string none = "none";
  const auto row = std::ranges::find(rows, layer, &scaling::PlanRow::path);
  return row == rows.end() ? none : row->precision;
}

}  // namespace

EngineConfig engine_config(const RunConfig& c, const PrecisionNow& now) {
  EngineConfig out = engine_config(c, now.recipe);
  for (const std::string& layer : now.layers)
    out.precision.meanwhile.push_back({.path = layer, .operands = {}, .recipe = c.recovery.layers.recipe});
  return out;
}

LayerChange layer_change(const EngineConfig& other, const RunConfig& run, RunEngine& engine) {
  const EnginePlacement& placement = engine.placement();
  const Engine& now = engine.engine();
  LayerChange out;
  if (!now.frozen.list().empty()) {
    out.obstacle = frozen_once;
    return out;
  }
  try {
    if (shards_masters(now)) {
      comm::DryRunCommunicator ranks = communicator_of(other, placement.planned);
      const Engine planned(other, Device::null, placement.target, &ranks);
      if (!same_parts(planned.parameters, now.parameters)) out.obstacle = about_codes(now, run);
      if (!out.obstacle.empty()) return out;
    }
    out.dry = placement.dry_run(other);
    require_native(out.dry, other.precision);
    require_memory(out.dry, placement.available_bytes() + now.stream.arena().peak().total, run.train);
  } catch (const ConfigError& e) {
    out.obstacle = e.what();
  } catch (const DeviceError& e) {
    out.obstacle = e.what();
  }
  return out;
}

std::string never_possible(const RunConfig& run, RunEngine& engine) {
  if (!engine.engine().frozen.list().empty()) return std::string(frozen_once);
  const EnginePlacement& placement = engine.placement();
  const Engine& now = engine.engine();
  if (!shards_masters(now)) return "";
  const EngineConfig safer = engine_config(run, PrecisionNow{run.recipe.recipe, {"*"}});
  comm::DryRunCommunicator ranks = communicator_of(safer, placement.planned);
  const bool codes = has_codes(now) || has_codes(Engine(safer, Device::null, placement.target, &ranks));
  return codes ? about_codes(now, run) : "";
}

std::string plan_changes(std::span<const std::string> layers, const std::vector<scaling::PlanRow>& before,
                         const std::vector<scaling::PlanRow>& after) {
  std::string out;
  for (const std::string& layer : layers)
    out += format("{}{}: {} -> {}", out.empty() ? "" : "; ", layer, precision_of(layer, before), precision_of(layer, after));
  return out;
}

void require_adapters(const RunConfig& c) {
  if (!c.lora && c.lora.init.empty()) return;
  if (c.model.init.empty())
    throw ConfigError("lora.rank needs model.init: adapters train over the weights of a model's folder; name one, or set lora.rank = 0");
  if (scaling::has_final_part(c.recipe))
    throw ConfigError(format("recipe.final = \"{}\": {}; set recipe.final = \"none\"", c.recipe.final_recipe, frozen_once));
}

void require_recovery(const RunConfig& c) {
  if (c.recovery.mode == health::RecoveryConfig::Mode::off) return;
  if (!c.alerts.enabled)
    throw ConfigError("recovery.mode needs alerts, which are its reasons: set alerts.enabled = true, or recovery.mode = \"off\"");
  const std::string& safer = c.recovery.layers.recipe;
  if (safer == "bf16") return;
  DType activations{};
  try {
    activations = scaling::make_recipe(safer, {})->activations();
  } catch (const ConfigError& e) {
    throw ConfigError(format("recovery.layers.recipe: {}", e.what()));
  }
  const DType own = scaling::make_recipe(c.recipe.recipe, c.recipe.options)->activations();
  if (activations != own)
    throw ConfigError(
        format("recovery.layers.recipe = \"{}\": activations are {} under it and {} under recipe.name = \"{}\"; choose another recipe",
               safer, activations, own, c.recipe.recipe));
}

}  // namespace octet::train
