#include "octet/train/step/tensor_rules.hpp"

#include <algorithm>

#include "octet/models/division.hpp"

namespace octet::train {
namespace {

// The first rule that n ranks break: "model.heads = 6 must be a multiple of it"; "" for none.
std::string broken_rule(const EngineConfig& c, std::int64_t n) {
  if (const std::string rule = models::broken_division(c.shape, n); !rule.empty()) return rule;
  const std::int64_t tokens = c.sequence / c.ranks.context;
  if (tokens % n == 0) return "";
  return format("data.sequence_length{} = {} must be a multiple of it", c.ranks.context > 1 ? " / ranks.context" : "", tokens);
}

// The nearest number that breaks no rule; of two equally near ones the smaller.
std::int64_t nearest_number(const EngineConfig& c, std::int64_t n) {
  for (std::int64_t d = 1;; ++d)
    for (const std::int64_t m : {n - d, n + d})
      if (m >= 1 && broken_rule(c, m).empty()) return m;
}

void require_options(const EngineConfig& c, std::int64_t n) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(format("ranks.tensor = {}: {}", n, why)); };
  if (!models::model_family(c.shape.family).divides)
    refuse(format("models of the family {} cannot be divided within layers; set ranks.tensor = 1, or choose llama, qwen2 or qwen3",
                  c.shape.family));
  if (scaling::has_narrow_range(c.precision.recipe))
    refuse(format("recipe.name = \"{}\": sums of FP16 activations between ranks overflow; choose another recipe", c.precision.recipe));
  if (c.average) refuse("train.average keeps means of whole weights; set it to 0");
  if (c.optimizer && c.comm.has_mu(c.optimizer->storage().gradients))
    refuse("factors mu of e4m3_shared are kept for whole tensors; set comm.gradients = \"e4m3\" and optim.gradients to another storage");
  if (c.comm.tensor == parallel::TensorWire::e4m3 && c.sequence / c.ranks.context / n * c.shape.width % storage_block != 0)
    refuse(
        format("comm.tensor = \"e4m3\" has a scale per {} values, and a rank has {} tokens of a sequence x model.width = {}; set "
               "comm.tensor = \"bf16\"",
               storage_block, c.sequence / c.ranks.context / n, c.shape.width));
}

}  // namespace

void require_tensor(const EngineConfig& c, std::int64_t ranks) {
  require_options(c, ranks);
  if (const std::string rule = broken_rule(c, ranks); !rule.empty())
    throw ConfigError(format("ranks.tensor = {}: {}; the nearest number for this model is {}", ranks, rule, nearest_number(c, ranks)));
}

namespace {

bool has_whole_blocks(const Cut& cut) {
  return std::ranges::all_of(cut.pieces, [](const CutPiece& p) {
    const auto whole = [](std::int64_t n) { return n % storage_block == 0; };
    return whole(p.count) && whole(p.first) && (p.run >= p.count || (whole(p.run) && whole(p.stride)));
  });
}

}  // namespace

void require_whole_blocks(const nn::Parameters& parameters, const optim::StateStorage& storage) {
  for (const optim::StateKey& k : optim::state_keys()) {
    if (!k.variable || !scales_blocks(storage.*k.storage)) continue;
    for (const Parameter* p : parameters.list())
      if (p->cut && p->role != ParameterRole::vector && !has_whole_blocks(p->cut))
        throw ConfigError(
            format("{} = \"{}\" has a scale per {} values, and the part of {} {} of each of ranks.tensor ranks does not have "
                   "whole blocks of them; set {} = \"bf16\", or choose widths that are multiples of {} x ranks.tensor",
                   k.key, storage.*k.storage, storage_block, p->path, p->whole(), k.key, storage_block));
  }
}

}  // namespace octet::train
