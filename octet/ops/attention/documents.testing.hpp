#pragma once

// Only for tests: documents packed into sequences.

#include <cstdint>
#include <vector>

#include "octet/numerics/philox.hpp"

namespace octet::ops {

/// Starts (documents.hpp) of random documents, `mean` tokens long on average; the first token of a sequence may continue one.
inline std::vector<std::int32_t> random_document_starts(std::int64_t tokens, std::int64_t sequence, std::uint32_t mean,
                                                        std::uint64_t seed = 7) {
  std::vector<std::int32_t> starts;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto place = std::int32_t(t % sequence);
    const bool begins = place == 0 || philox(seed, std::uint64_t(t)).w[0] % mean == 0;
    starts.push_back(begins ? place : starts.back());
  }
  return starts;
}

}  // namespace octet::ops
