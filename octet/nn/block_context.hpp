#pragma once

#include "octet/nn/key_cache.hpp"
#include "octet/nn/partition.hpp"
#include "octet/nn/routers.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::nn {

/// Inputs that all blocks of a pass share.
struct BlockContext {
  std::int64_t sequence = 0;               // tokens that each sequence has here
  ops::RopeTable rope;                     // unused by attention without rotary positions
  Tensor document_starts = {};             // ops::check_document_starts; empty: attention reads over the borders of documents
  SequencePart part = {};                  // of each sequence that is here
  RowExchange* keys = &whole_partition();  // among the members that have the other parts
  Routers::MicroBatch routing = {};
  KeyCache* cache = &no_cache();  // of a forward without backward
  int block = 0;                  // its number in the model
  std::int64_t window = 0;        // last tokens that attention reads; 0: all
  Tensor first_keys = {};         // ops::first_keys of a window

  /// AttentionForward::document_starts.
  const Tensor& attention_starts() const { return window > 0 ? first_keys : document_starts; }
};

}  // namespace octet::nn
