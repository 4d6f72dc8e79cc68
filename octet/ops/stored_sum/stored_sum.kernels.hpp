#pragma once

#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(stored_sum, const ops::StoredSum&)
