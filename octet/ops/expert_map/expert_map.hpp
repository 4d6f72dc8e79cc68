#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Groups of neighbouring rows of a matrix, one per expert, with limits that only the device knows. Group e has rows
/// [begin[e], begin[e] + count[e]). begin[e] is a multiple of `tile`, and begin[E] is the end of the last group.
struct RowGroups {
  Tensor begin;  // i32 [E + 1]
  Tensor count;  // i32 [E]
  std::int64_t tile = 128;
  std::int64_t counted = 0;  // rows for which work is counted, where the matrix has room for more than come at balance; 0: all of it

  std::int64_t size() const { return count.shape[0]; }
};

/// Where each choice of each token is among the rows of the experts: rows of expert e are in the order of t. No token is dropped.
struct ExpertMap {
  Tensor row;     // i32 [T, K]: the row of choice k of token t; -1 where this choice is none
  Tensor source;  // i32 [R]: t * K + k of a row; -1 for padding and for rows that no group has
  RowGroups groups;

  std::int64_t tokens() const { return row.shape[0]; }
  std::int64_t choices() const { return row.shape[1]; }  // K
  std::int64_t rows() const { return source.shape[0]; }  // R
};

/// The least number of rows, a multiple of the tile, that is enough for every choice of T tokens among E experts, K each:
/// T K + min(E, T K) (tile - 1), rounded down to the tile. It does not depend on the choice, so memory and launches do not, either.
std::int64_t rows_of_experts(std::int64_t tokens, std::int64_t choices, std::int64_t experts, std::int64_t tile);

/// Memory for the map of T tokens.
ExpertMap empty_expert_map(Stream&, std::int64_t tokens, std::int64_t choices, std::int64_t experts, std::int64_t tile, Region);

/// Fills the map. chosen: i32 [T, K], experts in [0, E), different ones per token; -1 for a choice that is none. Same input, same map on
/// every device. Throws ContractError on other shapes or dtypes and, on the CPU, for an expert out of range, naming its place.
void expert_map(Stream&, const Tensor& chosen, const ExpertMap&);

/// Throw ContractError, naming the op, unless the tensors have the shapes and dtypes above, of 1 to 1024 experts.
void check_row_groups(const char* op, const RowGroups&);
void check_expert_map(const char* op, const ExpertMap&);

}  // namespace octet::ops
