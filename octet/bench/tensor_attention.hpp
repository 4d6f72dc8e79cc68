#pragma once

#include "octet/bench/timing.hpp"
#include "octet/json/value.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::bench {

/// Options of `octet bench tp-attention`: one attention layer of a model with its projections, divided among 1, 2, 4, ... ranks.
struct TensorAttentionOptions {
  train::RunConfig config;           // model, device, tokens, comm.tensor
  std::vector<std::string> recipes;  // empty: recipe.name
  int ranks = 0;                     // threads of this process; 0: 2, or the ranks that a launcher started
  int repeats = 9;
};

/// Forward and backward of the layer on one number of ranks.
struct TensorAttentionRow {
  std::string recipe;
  int ranks = 1;
  bool overlaps = false;                   // exchanges run beside products: on GPUs, by comm.overlap
  Timing seconds;                          // of the slowest rank
  std::int64_t gathered = 0, reduced = 0;  // bytes sent by a rank, from its counters
  double y_error = 0, dx_error = 0;        // |x - x1| / |x1| over all values, x1: of one rank in FP32
};

struct TensorAttentionResult {
  std::string backend, machine, model;
  std::int64_t tokens = 0, sequence = 0;
  bool reports = true;  // false on processes other than that of rank 0
  std::vector<TensorAttentionRow> rows;
};

/// On the ranks of machine::on_ranks(), those of numbers that divide the model's heads. Throws ConfigError where the model, its sequence or
/// the number of ranks do not fit.
TensorAttentionResult measure_tensor_attention(const TensorAttentionOptions&);
std::string table_text(const TensorAttentionResult&);
json::Value to_json(const TensorAttentionResult&);

}  // namespace octet::bench
