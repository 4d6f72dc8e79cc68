#pragma once

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/swiglu/swiglu.hpp"

namespace octet::ops {

/// y = gate(left half) * right half of a product [M, 2 F]:
///   gemm() of `product`;   swiglu_forward() of its d to y
/// with their bits, except that a GPU may add in another order. product.d is memory, undefined afterwards. One row of bf16 or e4m3 with a
/// result of bf16, as a token that is generated needs it, is one launch on a GPU: F must be a multiple of 128, and y's scales, if it has
/// any, known or those of blocks of columns.
struct GatedGemm {
  const Gemm& product;
  Gate gate = Gate::silu;
};
/// Throws ContractError as its parts do.
void gated_gemm(Stream&, const GatedGemm&, Sink& y);

}  // namespace octet::ops
