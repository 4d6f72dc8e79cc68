#include "octet/data/ahead.hpp"

namespace octet::data {

Ahead ahead_of(const Batch& batch, std::int64_t depth) {
  Ahead out{batch.inputs, std::vector<std::int32_t>(batch.inputs.size(), -1)};
  for (std::int64_t row = 0; row < batch.rows; ++row)
    for (std::int64_t place = 0; place + depth < batch.length; ++place) {
      const auto at = std::size_t(row * batch.length + place), later = at + std::size_t(depth);
      if (batch.document_mask && batch.document_starts[later] > place) continue;
      out.inputs[at] = batch.inputs[later], out.targets[at] = batch.targets[later];
    }
  return out;
}

}  // namespace octet::data
