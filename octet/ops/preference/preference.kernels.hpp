#pragma once

#include "octet/ops/preference/preference.hpp"
#include "octet/tensor/backend.hpp"

/// results: f64 [P, PairResult::entries], overwritten: what each pair adds to the sums.
OCTET_KERNEL(preference, const ops::Preference&, const Tensor& results)
