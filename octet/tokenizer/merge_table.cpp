#include "octet/tokenizer/merge_table.hpp"

#include <bit>

namespace octet::tokenizer {

MergeTable::MergeTable(std::size_t merges) : entries_(std::bit_ceil(2 * merges + 2)), mask_(entries_.size() - 1) {}

void MergeTable::set(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  std::size_t i = place_of(key);
  while (entries_[i].key != empty && entries_[i].key != key) i = (i + 1) & mask_;
  entries_[i] = {key, merge};
}

}  // namespace octet::tokenizer
