#pragma once

#include <vector>

#include "octet/nn/partition.hpp"
#include "octet/ops/adapter_blocks/adapter_blocks.hpp"
#include "octet/tensor/parameter.hpp"

namespace octet::nn {

/// The form of an adapter of low rank.
struct LowRank {
  std::int64_t rank = 0;              // R
  std::vector<ops::RowBlock> blocks;  // rows of the whole weight that have matrices of their own, such as those of queries and of keys

  std::int64_t rows() const;  // of all blocks
};

/// The part of an adapter of low rank that a member has beside its part of the weight:
///
///   of rows      their B, and a copy of A. The gradient of A is a sum over members, as that of the layer's input
///   of columns   their A, and a copy of B. The gradient of B is a sum over members, as the layer's output
///
/// So members exchange what their layer does, and gradients of copies.
struct AdapterShard {
  std::int64_t out, whole_in;         // rows of the own weight, and columns of the whole one
  std::int64_t first_column = 0;      // of the own weight in the whole one
  Shape a, b;                         // the own part of [n R, in] and of [rows of all blocks, R]
  Cut cut_of_a, cut_of_b;             // empty where it is all
  std::vector<ops::RowBlock> blocks;  // rows of the own weight

  /// Throws ContractError for a form without rank or blocks, and a part without rows of each block.
  AdapterShard(const Parameter& weight, const LowRank&, const Partition&);

 private:
  void divide_rows(const Parameter& weight, const LowRank&, const Partition&);
  void divide_columns(const Parameter& weight, const Partition&);
};

}  // namespace octet::nn
