#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "octet/ops/rope/rope.hpp"

namespace octet::models {

/// The shape of a decoder-only transformer of any family.
struct ModelShape {
  std::string family;      // key of the registry
  std::int64_t width = 0;  // D
  std::int64_t layers = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t hidden = 0;        // F
  std::int64_t vocabulary = 0;    // number of tokens
  std::int64_t max_sequence = 0;  // longest context; rows of learned positions
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  std::optional<ops::RopeScaling> rope_scaling;
  bool tied = false;  // head and embedding share one matrix

  /// Rows of embedding and head: the vocabulary up to the next multiple of 16, as 8-bit GEMMs need.
  std::int64_t padded_vocabulary() const { return round_up(vocabulary, 16); }
  /// Values of those rows that belong to no token: no parameters.
  std::int64_t padding() const { return (padded_vocabulary() - vocabulary) * width * (tied ? 1 : 2); }
  bool operator==(const ModelShape&) const = default;
};

}  // namespace octet::models
