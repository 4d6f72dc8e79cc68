#pragma once

#include "octet/scaling/slots.hpp"
#include "tests/faults/fault.hpp"

namespace octet::faults {

/// 10^6 in one element of an operand of "layers.<layer>.attn.out": of its input or of the gradient of its output in one step, just before
/// the layer quantizes it, or of its weight from then on. FP16 has no 10^6: the element is infinite there.
std::unique_ptr<Disturbance> make_outlier(const Target&, scaling::Operand);

/// NaN in the embedding of the most frequent byte, from then on.
std::unique_ptr<Disturbance> make_nan_row(const Target&);

}  // namespace octet::faults
