#include "octet/data/majority.hpp"

namespace octet::data {

double majority_share(std::span<const Batch> batches) {
  std::int64_t votes = 0, targets = 0, same = 0;
  std::int32_t token = -1;
  for (const Batch& b : batches)
    for (const std::int32_t t : b.targets) {
      if (t < 0) continue;
      if (votes == 0) token = t;
      votes += t == token ? 1 : -1;
      ++targets;
    }
  if (votes == 0) return 0;
  for (const Batch& b : batches)
    for (const std::int32_t t : b.targets) same += t == token;
  return 2 * same > targets ? double(same) / double(targets) : 0;
}

}  // namespace octet::data
