#pragma once

#include "octet/telemetry/ranks_facts.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::train {

/// The part of a step's work that its plan promises.
telemetry::StepWork promised_part(const Work&);

/// The work of a rank in a step. Throws ContractError with rank, step, and both numbers of every count that differs from the plan: 8-bit
/// matrix products that ran otherwise, or bytes that were not sent, are never passed over.
void require_as_planned(const telemetry::StepWork& ran, const telemetry::StepWork& planned, std::int64_t step, int rank);

}  // namespace octet::train
