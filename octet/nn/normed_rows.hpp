#pragma once

#include "octet/nn/linear.hpp"
#include "octet/nn/norm.hpp"
#include "octet/ops/quantize/saved.hpp"

namespace octet::nn {

/// Saved by forward of a norm inside attention: its rows and their statistics, f32 [rows], and the operand of the layer behind it, if there
/// is one.
struct NormedRows {
  ops::Saved x;
  Tensor inv_rms;
  Linear::Saved linear;
};

/// Saved by forward of any form of queries, keys and values.
struct QkvSaved {
  Linear::Saved first;  // of the layer that reads x
  NormedRows q, k;      // of queries and keys, or of the latents of both; empty without norms
  Tensor outside;       // of Clip; empty without a limit
};

}  // namespace octet::nn
