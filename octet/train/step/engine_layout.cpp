#include "octet/train/step/engine_layout.hpp"

namespace octet::train {

Layout layout_of(const EngineConfig& c, std::int64_t groups) {
  Layout out = layout_of(c.ranks);
  out.data = 1, out.data = groups / out.sequence_groups();
  if (c.optimizer) out.level = c.optimizer->level;
  return out;
}

Subject subject_of(const EngineConfig& c, std::int64_t groups) {
  return {.shape = c.shape,
          .experts = c.shape.experts.number,
          .sequence = c.sequence,
          .recipe = c.precision.recipe,
          .eight_bit_recipe = c.precision.recipe,
          .codes_attention = scaling::codes_attention(c.precision),
          .optimizer = c.optimizer,
          .preferences = bool(c.preference),
          .adapters = c.adapters,
          .comm = c.comm,
          .expert_room = c.ranks.expert_room,
          .sequences = c.micro_batches * groups};
}

}  // namespace octet::train
