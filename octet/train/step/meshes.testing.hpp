#pragma once

#include <vector>

#include "octet/parallel/ranks_config.hpp"

namespace octet::train::testing {

/// A mesh of ranks, and a stage of ZeRO on it.
struct Mesh {
  std::int64_t tensor = 1, context = 1, data = 1, pipeline = 1, zero = 0;

  int all() const { return int(tensor * context * data * pipeline); }
  parallel::RanksConfig ranks() const { return {.data = data, .tensor = tensor, .context = context, .pipeline = pipeline, .zero = zero}; }
  std::string text() const {
    return format("tensor {} x context {} x data {} x pipeline {}, stage {}", tensor, context, data, pipeline, zero);
  }
};

/// All meshes of 2, 4 and 8 ranks at every stage: a pipeline has stages 0 and 1.
inline std::vector<Mesh> all_meshes(std::int64_t most_tensor, std::int64_t most_pipeline) {
  std::vector<Mesh> out;
  for (const std::int64_t n : {2, 4, 8})
    for (std::int64_t t = 1; t <= std::min(n, most_tensor); t *= 2)
      for (std::int64_t c = 1; t * c <= n; c *= 2)
        for (std::int64_t d = 1; t * c * d <= n; d *= 2) {
          const std::int64_t p = n / (t * c * d);
          for (std::int64_t zero = 0; p <= most_pipeline && zero <= (c * d == 1 ? 0 : p > 1 ? 1 : 3); ++zero)
            out.push_back({t, c, d, p, zero});
        }
  return out;
}

}  // namespace octet::train::testing
