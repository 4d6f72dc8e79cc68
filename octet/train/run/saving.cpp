#include "octet/train/run/saving.hpp"

namespace octet::train {

void Saving::if_due(const health::Orders& orders) {
  if (orders.incident) return;
  const std::int64_t step = run_.at.step;
  const bool saving = ranks_.agreed().saving;
  const bool committed = !saving && checkpoints_.commit();
  const bool due = ranks_.agreed().save;
  // Recovery returns to a checkpoint: then its step must not depend on the speed of the disk.
  if (!due || ((saving || committed) && !orders.acts)) return;
  if (saving || committed) checkpoints_.finish();
  if (!finite_.of_weights()) return;
  run_.at.elapsed = run_.recorder.seconds();
  checkpoints_.save(step);
}

void Saving::last() {
  run_.at.elapsed = run_.recorder.seconds();
  checkpoints_.save_last(run_.at.step);
}

}  // namespace octet::train
