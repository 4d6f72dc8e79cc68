#pragma once

#include "octet/ops/quantize/spec.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// total[0] = sum of `nonfinite` over n rows of a health table: i64 [1].
void count_nonfinite(Stream&, const QuantizeHealth* table, std::int64_t n, const Tensor& total);

}  // namespace octet::ops
