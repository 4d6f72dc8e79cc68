#include "octet/train/step/engine_layout.hpp"

namespace octet::train {

Layout layout_of(const EngineConfig& c, std::int64_t groups) {
  return {.tensor = c.ranks.tensor,
          .pipeline = c.ranks.pipeline,
          .context = c.ranks.context,
          .data = groups,
          .experts = c.ranks.expert,
          .schedule = c.ranks.schedule,
          .chunks = chunks_of(c.ranks.schedule, c.ranks.chunks),
          .zero = c.ranks.zero,
          .shard = c.ranks.shard,
          .level = c.optimizer ? c.optimizer->level : optim::Level::O0};
}

Subject subject_of(const EngineConfig& c, std::int64_t groups) {
  return {.shape = c.shape,
          .experts = c.shape.experts.number,
          .sequence = c.sequence,
          .recipe = c.precision.recipe,
          .eight_bit_recipe = c.precision.recipe,
          .codes_attention = scaling::codes_attention(c.precision),
          .optimizer = c.optimizer,
          .average = c.average,
          .preferences = bool(c.preference),
          .adapters = c.adapters,
          .comm = c.comm,
          .expert_room = c.ranks.expert_room,
          .sequences = c.micro_batches * groups};
}

}  // namespace octet::train
