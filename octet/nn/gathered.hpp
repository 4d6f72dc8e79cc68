#pragma once

#include "octet/nn/linear.hpp"
#include "octet/nn/partition.hpp"

namespace octet::nn {

/// Whether rows that members gather for an operand [tokens, width] travel as 8-bit codes: one scale for all values gives both orientations
/// the same codes, so that a member can make all operands of gathered codes. Other rows travel as values.
bool gathers_codes(const ops::QuantizeSpec&, const Shape& whole);

/// Values for operands that are views of them: x itself for a region of scratch, whose product comes before x changes. For another region,
/// whose product is deferred, a copy there.
Tensor lasting(Stream&, const Tensor& x, Region);

/// Operands of x [T, in] of a layer, of which each member has rows [T/n, in]: the bits of Linear::quantize_input() of all rows. A scale
/// that follows from the data is that of the maximum over members.
QTensor gather_input(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&, bool keep);
/// The same as Linear::rebuild_input().
Quantized gather_rebuilt_input(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&);
/// The same as Linear::quantize_gradient(). Operands do not read `own` after this if their product is deferred: it may be updated in place.
ops::Sink gather_gradient(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&);

}  // namespace octet::nn
