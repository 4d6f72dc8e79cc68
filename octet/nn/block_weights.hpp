#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// The weights of a model whose blocks' matrices are not all in memory: those of a block are from open() until another block of the same
/// parity is opened.
class BlockWeights {
 public:
  virtual ~BlockWeights() = default;
  /// Before a block's forward, backward, or quantization of its weights: always in the same order in the same pass.
  virtual void open(Stream&, int block) = 0;
};

}  // namespace octet::nn
