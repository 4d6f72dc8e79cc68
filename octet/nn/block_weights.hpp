#pragma once

#include <cstdint>

#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// The weights of a model whose blocks' matrices may not all be in memory: those of a block are from open() until another block of the same
/// parity is opened.
class BlockWeights {
 public:
  enum class Needed : std::uint8_t {
    all,     // before a block's forward and backward
    values,  // before its weights are quantized: all but those that ranks encode before they are gathered
  };
  virtual ~BlockWeights() = default;
  /// Whether matrices come and go: otherwise all are in memory, and open() does nothing.
  virtual bool in_turn() const = 0;
  /// Always in the same order in the same pass.
  virtual void open(Stream&, int block, Needed) = 0;
};

}  // namespace octet::nn
