#include "octet/train/run/ranks/rank_wish.hpp"

#include "octet/train/step/engine_layout.hpp"

namespace octet::train {

machine::RankWish rank_wish(const RunConfig& c) {
  const bool as_started = c.ranks.data == 0 && (c.ranks.beside_data() == 1 || machine::started_ranks() > 0);
  if (!as_started) {
    const EngineConfig engine = engine_config(c);
    const std::int64_t groups = c.ranks.all() / c.ranks.beside_data();
    require_layout(layout_of(engine, groups), subject_of(engine, groups));
  }
  return {.ranks = as_started ? 0 : c.ranks.all(),
          .device = c.device,
          .limit_seconds = c.ranks.limit_seconds,
          .peer_memory = c.comm.peer_memory};
}

}  // namespace octet::train
