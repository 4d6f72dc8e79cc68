#pragma once

#include "octet/ops/rope/rope_codes.hpp"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// Of bf16 and heads whose columns are a multiple of 16.
void rope_codes(Queue, const ops::RopeCodes&);
/// Raises maxima, which are 0.
void rope_maxima(Queue, const ops::RopeForward&, const Tensor& maxima);

}  // namespace octet::cuda
