#pragma once

#include "octet/data/eval_batches.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// use(batch, true) for each of the batches that this rank's group computes: in turn with the other groups. Where ranks with other
/// sequences exchange tensors in a pass, all make as many: use(batch, false) is one more pass whose results do not count. False when it was
/// stopped.
template <class Use>
bool each_own_batch(Engine& e, const data::EvalBatches& batches, bool (*stopped)(), const Use& use) {
  const auto group = std::uint64_t(e.axes.sequence_group()), groups = std::uint64_t(e.axes.sequence_groups());
  for (std::uint64_t first = 0; first < batches.size(); first += groups) {
    if (stopped != nullptr && stopped()) return false;
    const bool own = first + group < batches.size();
    if (own || e.sharding.data_ranks_meet()) use(batches[own ? first + group : first], own);
  }
  return true;
}

}  // namespace octet::train
