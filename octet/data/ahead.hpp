#pragma once

#include "octet/data/batch.hpp"

namespace octet::data {

/// For each place of a batch the token `depth` places later, and its target. Where the row, or with document_mask the document of the
/// place, ends before that token, nothing is predicted: the input is the place's own token, and the target -1.
struct Ahead {
  std::vector<std::int32_t> inputs, targets;  // [rows, length]
};
Ahead ahead_of(const Batch&, std::int64_t depth);

}  // namespace octet::data
