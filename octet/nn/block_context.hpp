#pragma once

#include "octet/ops/rope/rope.hpp"

namespace octet::nn {

/// Inputs that all blocks of a pass share.
struct BlockContext {
  std::int64_t sequence = 0;    // tokens a sequence
  ops::RopeTable rope;          // unused by attention without rotary positions
  Tensor document_starts = {};  // ops::check_document_starts; empty: attention reads over the borders of documents
};

}  // namespace octet::nn
