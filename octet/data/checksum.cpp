#include "octet/data/checksum.hpp"

#include <xxhash.h>

namespace octet::data {

Checksum checksum_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string to_text(const Checksum& sum) {
  std::string text;
  for (const std::uint64_t half : {sum.high, sum.low})
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[half >> shift & 15];
  return text;
}

}  // namespace octet::data
