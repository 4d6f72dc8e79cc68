#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octet::telemetry {

/// Bytes at a run's peak, by category.
struct MemoryUse {
  struct Category {
    std::string name{};  // "weights", "gradients", "optimizer", "activations", ...
    std::int64_t bytes = 0;
  };
  std::vector<Category> categories{};
  std::int64_t peak = 0;  // of the whole arena; the categories sum to it, or to less where some bytes belong to none
};

}  // namespace octet::telemetry
