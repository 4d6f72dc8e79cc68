#pragma once

#include <cstdint>
#include <vector>

namespace octet::data {

class Dataset;

/// Tokens [begin, end) of a dataset's stream.
struct TokenRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};
/// Ranges that follow one another without touching, read as one text.
using TokenRanges = std::vector<TokenRange>;

struct Split {
  TokenRanges train, held_out;
};

/// Holds out max(1, floor(fraction * documents)) documents for evaluation, never all; the rest is for training. They are those with the
/// smallest hash of their number, so that they are spread over the dataset and of the same kind as the others, and a larger fraction holds
/// out the same documents and more. A dataset of a single document is cut inside it, before its last max(1, floor(fraction * tokens))
/// tokens. Of a dataset with pairs both documents of a pair are held out, and of a single pair nothing. Fraction 0 holds out nothing.
/// Throws ConfigError unless 0 <= fraction < 1.
Split split_documents(const Dataset&, double fraction);

}  // namespace octet::data
