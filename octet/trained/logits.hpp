#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/train/step/engine.hpp"

namespace octet::trained {

/// Throws DataError for an id that is not one of the model's.
void require_ids(std::span<const std::int64_t> ids, std::int64_t vocabulary);

/// The logits after each token of one sequence, [ids.size(), vocabulary], without the padding of the vocabulary. Changes no state.
std::vector<float> logits_of(train::Engine&, std::span<const std::int32_t> ids);

}  // namespace octet::trained
