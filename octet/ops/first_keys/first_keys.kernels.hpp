#pragma once

#include "octet/ops/first_keys/first_keys.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(first_keys, const ops::FirstKeys&)
