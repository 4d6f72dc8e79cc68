#include "octet/train/run/ranks/rank_wish.hpp"

namespace octet::train {

machine::RankWish rank_wish(const RunConfig& c) {
  const bool as_started = c.ranks.data == 0 && (c.ranks.beside_data() == 1 || machine::started_ranks() > 0);
  return {.ranks = as_started ? 0 : c.ranks.all(),
          .device = c.device,
          .limit_seconds = c.ranks.limit_seconds,
          .peer_memory = c.comm.peer_memory};
}

}  // namespace octet::train
