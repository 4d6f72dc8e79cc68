#include "octet/base/checksum.hpp"

#include <xxhash.h>

#include <new>

namespace octet::data {

Checksum checksum_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Checksummer::Checksummer() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
Checksummer::~Checksummer() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Checksummer::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

Checksum Checksummer::sum() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {hash.low64, hash.high64};
}

std::string to_text(const Checksum& sum) {
  std::string text;
  for (const std::uint64_t half : {sum.high, sum.low})
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[half >> shift & 15];
  return text;
}

}  // namespace octet::data
