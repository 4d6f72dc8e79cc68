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

/// Memory for operands of rows that members gather, and the work that fills it, which reads the own rows.
struct Gather {
  ops::Sink operands;
  SideWork::Work fill;
};

/// Of x [T, in] of a layer, of which each member has rows [T/n, in]: the bits of Linear::quantize_input() of all rows. A scale that
/// follows from the data is that of the maximum over members.
Gather gather_input(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&, bool keep);
/// The same as Linear::rebuild_input().
Gather gather_rebuilt_input(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&);
/// The same as Linear::quantize_gradient(). Filled operands do not read `own` if their product is deferred: it may be updated in place.
Gather gather_gradient(Stream&, const Linear&, Partition&, const Tensor& own, const scaling::Pass&);

/// Linear::backward() of a layer of which each member has rows: dx [T/n, in] = the own rows of the sum over members, reduced beside the
/// weight's product. saved.x may still be gathered beside the stream.
void backward_and_reduce(Stream&, Linear&, Partition&, const ops::Sink& dy, const Linear::Saved&, const Tensor& dx, const scaling::Pass&);

}  // namespace octet::nn
