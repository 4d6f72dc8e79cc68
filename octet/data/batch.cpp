#include "octet/data/batch.hpp"

#include <algorithm>
#include <limits>

namespace octet::data {

std::int64_t PairsOfBatch::count() const {
  return std::ranges::count_if(numbers, [](std::int64_t n) { return n >= 0; });
}

void Batch::resize() {
  const auto tokens = std::size_t(rows * length), entries = std::size_t(rows * pairs.per_row);
  inputs.resize(tokens), targets.resize(tokens);
  document_starts.resize(document_mask ? tokens : 0);
  pairs.places.assign(4 * entries, 0), pairs.numbers.assign(entries, -1);
  pairs.references.assign(2 * entries, std::numeric_limits<double>::quiet_NaN());
}

std::int64_t Batch::counted() const {
  if (pairs.per_row > 0) return pairs.count();
  return std::ranges::count_if(targets, [](std::int32_t target) { return target >= 0; });
}

}  // namespace octet::data
