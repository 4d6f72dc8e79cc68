#pragma once

#include <vector>

#include "octet/python/operand_codec.hpp"

namespace octet::python {

/// One linear layer of Octet (nn::Linear) on values of the host.
struct LayerRun {
  CodecConfig config;
  std::int64_t tokens = 0, in = 0, out = 0;
  std::int64_t steps = 1;             // forward and backward so often, each followed by the recipe's end of a step
  Storage weights = Storage::f32;     // and of their gradient: f32 or bf16
  std::vector<float> x, w, dy, bias;  // [tokens, in], [out, in], [tokens, out], [out] or empty; x and dy are rounded to bf16

  struct Result {
    std::vector<float> y, dx, dw, db;  // of the last step
  };
  /// On the CPU. Throws ConfigError when the recipe does not exist.
  Result run() const;
};

}  // namespace octet::python
