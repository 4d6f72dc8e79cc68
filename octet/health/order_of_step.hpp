#pragma once

#include <vector>

#include "octet/telemetry/run_facts.hpp"

namespace octet::health {

/// The tensors in the order in which a step quantizes them: weights, then activations as the model lists its layers, then gradients from
/// the last layer to the first. A fault reaches tensors that follow, none before.
std::vector<std::size_t> order_of_step(const std::vector<telemetry::QuantizerFacts>&);

}  // namespace octet::health
