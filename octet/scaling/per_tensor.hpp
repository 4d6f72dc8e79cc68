#pragma once

#include "octet/scaling/precision.hpp"

namespace octet::scaling {

/// E4M3 with one scale per tensor for all layers: measured of each tensor when it is quantized, or known before, which
/// Precision::set_quantizer_states() sets.
PrecisionConfig per_tensor_measured();
PrecisionConfig per_tensor_known();

}  // namespace octet::scaling
