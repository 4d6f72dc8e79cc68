#pragma once

#include "octet/ops/normal/normal.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(fill_normal, std::uint64_t key, float deviation, const Tensor& x, std::int64_t first)
