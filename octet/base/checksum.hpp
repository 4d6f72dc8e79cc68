#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace octet::data {

/// XXH3-128 of some bytes (xxHash 0.8, seed 0): finds damage, is no defence against a forger.
struct Checksum {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

Checksum checksum_of(std::string_view bytes);

/// The same of bytes that come in parts.
class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;
  void add(std::span<const std::byte> bytes);
  Checksum sum() const;

 private:
  void* state_;
};

/// 32 hexadecimal digits, the highest first, as `xxhsum -H2` prints them.
std::string to_text(const Checksum&);

}  // namespace octet::data
