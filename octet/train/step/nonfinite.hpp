#pragma once

#include <span>
#include <string>

#include "octet/train/step/step.hpp"

namespace octet::train {

/// Where a value that is not finite first appears when the step's forward and backward are run again on the same weights: a path such
/// as "layers.2.mlp.down.y", or that of the first parameter with such a gradient; "" when everything is finite. A moment or a parameter
/// that is not finite comes first: "layers.2.mlp.down.weight.m" is a first moment, ".v" a second one. Records nothing, but
/// makes other gradients: call it in the `read` of StepRunner::run, which clears them afterwards.
std::string first_nonfinite(Engine&, std::span<const data::Batch> micro_batches);

/// The path of the first parameter with a value that is not finite; "" when all are. Reads each once, and changes nothing.
std::string nonfinite_parameter(Engine&);

/// The path of the weight of the first norm of a forward of `batch` in which a row is not finite, or too large for its squares; "" if there
/// is none. Such a row becomes zeros, so the loss alone looks sound. Changes no state.
std::string overflowing_norm(Engine&, const data::Batch& batch);

}  // namespace octet::train
