#pragma once

// Only for *.cuda.cu files: the gate of a launch.

#include <type_traits>

#include "octet/ops/swiglu/swiglu.hpp"
#include "octet/numerics/formats.hpp"

namespace octet::cuda {

/// f(gate). The usual gate of BF16 values is a constant of the kernel, which saves a copy of each argument and its multiplication by one.
template <class T, class F>
void with_gate(ops::Gate gate, const F& f) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (gate == ops::Gate::silu) return f(std::integral_constant<ops::Gate, ops::Gate::silu>());
  }
  f(gate);
}

}  // namespace octet::cuda
