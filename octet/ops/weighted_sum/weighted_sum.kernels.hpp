#pragma once

#include "octet/ops/weighted_sum/weighted_sum.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(weighted_sum, const ops::WeightedSum&)
