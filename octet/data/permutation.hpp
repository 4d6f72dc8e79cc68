#pragma once

#include <bit>
#include <cstdint>

#include "octet/numerics/philox.hpp"

namespace octet::data {

/// A shuffle of 0 .. size-1 without memory: place -> element is a bijection that depends on (size, seed, epoch) alone.
/// A balanced Feistel network of 8 rounds with Philox as the round function permutes the next even power of two; a value beyond `size`
/// is sent through again until it falls inside (fewer than 4 passes on average), which keeps it a bijection.
/// Sources: Luby and Rackoff 1988 (the network), Black and Rogaway 2002, section 4 (cycle walking).
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
      : size_(size), key_(seed ^ hash_of("data order")), epoch_(epoch), half_bits_(size > 1 ? (std::bit_width(size - 1) + 1) / 2 : 0) {}

  std::uint64_t size() const { return size_; }
  /// The element at `place` < size().
  std::uint64_t operator()(std::uint64_t place) const {
    if (size_ <= 1) return place;
    do place = pass(place);
    while (place >= size_);
    return place;
  }

 private:
  std::uint64_t pass(std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t(1) << half_bits_) - 1;  // at most 32 bits
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (std::uint64_t round = 0; round < 8; ++round) {
      const std::uint64_t mixed = left ^ (philox(key_, right << 8 | round, epoch_).w[0] & mask);
      left = right, right = mixed;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t size_, key_, epoch_;
  int half_bits_;
};

}  // namespace octet::data
