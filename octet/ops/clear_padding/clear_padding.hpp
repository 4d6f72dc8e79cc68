#pragma once

#include "octet/ops/expert_map/expert_map.hpp"

namespace octet::ops {

/// x[r, :] = 0 for each row r from the first group's begin to the last group's end that is of no group: the padding behind the rows of each
/// group, whose products are undefined, and which operands of columns need as zeros. x: [R, C] f32, bf16 or f16. Throws ContractError on
/// other shapes or dtypes.
void clear_padding(Stream&, const RowGroups&, const Tensor& x);

}  // namespace octet::ops
