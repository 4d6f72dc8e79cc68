#pragma once

#include <cstdint>

namespace octet::data {

class Dataset;

/// Tokens [begin, end) of a dataset's stream.
struct TokenRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

struct Split {
  TokenRange train, held_out;
};

/// Holds out the last max(1, floor(fraction * documents)) documents for evaluation, never all; the rest is for training. A dataset of
/// a single document is cut inside it, before its last max(1, floor(fraction * tokens)) tokens. Fraction 0 holds out nothing.
/// Throws ConfigError unless 0 <= fraction < 1.
Split split_documents(const Dataset&, double fraction);

}  // namespace octet::data
