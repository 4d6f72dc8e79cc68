#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octet::data {

/// XXH3-128 of some bytes (xxHash 0.8, seed 0): finds damage, is no defence against a forger.
struct Checksum {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

Checksum checksum_of(std::string_view bytes);

/// 32 hexadecimal digits, the highest first, as `xxhsum -H2` prints them.
std::string to_text(const Checksum&);

}  // namespace octet::data
