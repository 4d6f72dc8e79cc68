#pragma once

#include "octet/ops/gemm/gemm.hpp"

namespace octet::ops {

/// Throws ContractError as gemm() does. `cpu`: codes may be decoded or transposed.
void check_gemm(const Gemm&, bool cpu);
/// Whether a GPU multiplies by Octet's kernel that reads b once (GemmWay::few_rows).
bool reads_b_once(const Gemm&);

}  // namespace octet::ops
