#pragma once

#include "octet/ops/balance/balance.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cuda {
void balance_gradient(Queue, const ops::BalanceGradient&);
void balance_bias(Queue, const ops::BalanceBias&);
}  // namespace octet::cuda
