#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace octet::tokenizer {

/// The ids of parts that were encoded before: a table with one place per hash, 4 MiB. A part of more bytes or ids is not stored.
class PreTokenCache {
 public:
  static constexpr std::size_t most_bytes = 30, most_ids = 8;

  struct alignas(64) Entry {
    std::uint8_t bytes = 0, ids = 0;  // bytes = 0: no entry
    std::array<char, most_bytes> part;
    std::array<std::int32_t, most_ids> id;
  };

  PreTokenCache() : entries_(places) {}
  /// The place of a part of 1 to most_bytes bytes.
  Entry& place_of(std::string_view part) {
    std::uint64_t hash = part.size() * factor;
    const char* at = part.data();
    std::size_t left = part.size();
    for (; left > 8; at += 8, left -= 8) mix(hash, at, 8);
    mix(hash, at, left);
    return entries_[hash >> (64 - place_bits)];
  }
  static bool holds(const Entry& entry, std::string_view part) {
    return entry.bytes == part.size() && std::memcmp(entry.part.data(), part.data(), part.size()) == 0;
  }
  static void store(Entry& entry, std::string_view part, std::span<const std::int32_t> ids) {
    entry.bytes = std::uint8_t(part.size()), entry.ids = std::uint8_t(ids.size());
    std::memcpy(entry.part.data(), part.data(), part.size());
    std::copy(ids.begin(), ids.end(), entry.id.begin());  // a part may have no ids
  }

 private:
  static constexpr std::size_t place_bits = 16, places = std::size_t(1) << place_bits;
  static constexpr std::uint64_t factor = 0x9E3779B97F4A7C15;
  static void mix(std::uint64_t& hash, const char* at, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    hash = (hash ^ word) * factor;
    hash ^= hash >> 32;
    hash *= factor;
  }

  std::vector<Entry> entries_;
};

}  // namespace octet::tokenizer
