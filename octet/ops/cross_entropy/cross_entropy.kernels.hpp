#pragma once

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(cross_entropy, const ops::CrossEntropy&)
OCTET_KERNEL(logit_statistics, const ops::LogitStatistics&)

namespace octet::cuda {
/// *mean = *sum / *counted.
void mean_loss(Queue, const double* sum, const std::int64_t* counted, float* mean);
}  // namespace octet::cuda
