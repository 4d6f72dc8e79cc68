#pragma once

#include "octet/ops/dropout/dropout.math.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(dropout, const ops::Dropout&)
