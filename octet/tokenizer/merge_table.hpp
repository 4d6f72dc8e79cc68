#pragma once

#include <cstdint>
#include <vector>

namespace octet::tokenizer {

/// The merges of a model: (left id, right id) -> (rank, id of both). A hash table with open addressing.
class MergeTable {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct Merge {
    std::uint32_t rank = none;  // lower ranks are merged first; none: there is no such merge
    std::int32_t id = -1;
  };

  /// Space for `merges` entries.
  explicit MergeTable(std::size_t merges = 0);
  /// A later entry of the same pair replaces the earlier one.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t i = place_of(key);; i = (i + 1) & mask_) {
      if (entries_[i].key == key) return entries_[i].merge;
      if (entries_[i].key == empty) return {};
    }
  }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t(0);
  struct Entry {
    std::uint64_t key = empty;
    Merge merge;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right);
  }
  std::size_t place_of(std::uint64_t key) const {
    const std::uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15;
    return std::size_t(mixed >> 20) & mask_;
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
};

}  // namespace octet::tokenizer
