#pragma once

#include <cstdint>

#include "octet/base/hd.hpp"

namespace octet::ops {

/// bias[e] of one layer of E experts. Counts are integers, so their sum is exact in double.
OCTET_HD void balance_bias_layer(std::int64_t E, const float* counts, float rate, float* bias) {
  double sum = 0;
  for (std::int64_t e = 0; e < E; ++e) sum += double(counts[e]);
  for (std::int64_t e = 0; e < E; ++e) {
    const double over = double(counts[e]) * double(E) - sum;
    if (over != 0) bias[e] += over < 0 ? rate : -rate;
  }
}

}  // namespace octet::ops
