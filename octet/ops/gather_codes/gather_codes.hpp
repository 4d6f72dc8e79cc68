#pragma once

#include "octet/ops/expert_map/expert_map.hpp"
#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// The operands of gather_rows(), with its bits. Where a row's codes do not depend on rows beside it, a token's row is encoded once, and
/// its codes are copied to the rows of its choices:
///
///   rows alone                 per tensor, per row and per block of a row
///   columns, or both           per tensor with a scale from the data, since columns are then the codes of rows; on a CPU also with a known
///                              scale, where they are a view
///
/// Scales of blocks along tokens depend on the order of the rows: such columns, and rows beside them, are encoded as gather_rows() does.
/// y.plain may be used as workspace and is not filled. Health counts each token once. Every token must be the source of a row. Throws
/// ContractError as gather_rows().
void gather_encoded(Stream&, const Tensor& x, const ExpertMap&, Sink& y);

}  // namespace octet::ops
