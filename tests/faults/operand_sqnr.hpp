#pragma once

#include <string>

#include "octet/scaling/slots.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::faults {

/// An element of a matrix.
struct Element {
  std::int64_t row = 0, col = 0;
};

/// The linear layer of that path. Throws ContractError if there is none.
nn::LinearSite& linear(train::Engine&, const std::string& path);

/// SQNR in dB of a tensor as the layer quantizes it now, without recording: 10 log10(sum x^2 / sum (x - q)^2) over all elements but
/// `left_out`. Infinite where nothing is quantized. `x`: the input, or the gradient of the output; the layer's weight needs none. On a CPU.
double operand_sqnr(train::Engine&, nn::LinearSite&, scaling::Operand, const Tensor& x, Element left_out);

}  // namespace octet::faults
