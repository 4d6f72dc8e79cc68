#include "octet/train/step/context_rules.hpp"

namespace octet::train {
namespace {

bool divides(std::int64_t sequence, std::int64_t ranks) { return sequence % (2 * ranks) == 0; }

std::string nearest_number(std::int64_t sequence, std::int64_t n) {
  for (std::int64_t d = 1; d < n; ++d)
    for (const std::int64_t m : {n - d, n + d})
      if (m == 1 || divides(sequence, m)) return to_text(m);
  return "1";
}

}  // namespace

void require_context(const EngineConfig& c, std::int64_t n) {
  const auto refuse = [&](const std::string& why) { throw ConfigError(format("ranks.context = {}: {}", n, why)); };
  if (!models::model_family(c.shape.family).rotary)
    refuse(format("models of the family {} have learned positions, which are not divided; choose llama, qwen2 or qwen3", c.shape.family));
  if (scaling::has_narrow_range(c.precision.recipe))
    refuse(format("recipe.name = \"{}\": sums of FP16 activations between ranks overflow; choose another recipe", c.precision.recipe));
  if (!divides(c.sequence, n))
    refuse(
        format("data.sequence_length = {} must be a multiple of {}, since each rank has two segments of a sequence; the nearest number "
               "for this length is {}",
               c.sequence, 2 * n, nearest_number(c.sequence, n)));
}

}  // namespace octet::train
