#pragma once

#include "octet/nn/operands.hpp"

namespace octet::nn {

/// Whether rows that members gather for an operand [tokens, width] of a layer travel as 8-bit codes: one scale for all values gives both
/// orientations the same codes, so that a member can make all operands of gathered codes. Other rows travel as values, and so do those
/// whose values the layer reads.
bool gathers_codes(const LinearSite&, const OperandRequest&, const ops::QuantizeSpec&, const Shape& whole);

/// Values for operands that are views of them: x itself for a region of scratch, whose product comes before x changes. For another region,
/// whose product is deferred, a copy there.
Tensor lasting(Stream&, const Tensor& x, Region);

/// Memory for operands of rows that members gather, and the work that fills it.
struct Gather {
  ops::Sink operands;
  SideWork::Work fill;
};

/// Of the own rows own.values [T/n, C], which the work reads: the operands of all rows [T, C], with the bits that one member makes. A scale
/// that follows from the data is that of the maximum over members. Filled operands do not read the own rows of a gradient whose product is
/// deferred: they may be updated in place.
Gather gather_operands(Stream&, const LinearSite&, Partition&, const OperandRequest& own, const scaling::Pass&);

/// The same of own.tokens rows that produce(sink) makes at once. One member's are its operands already.
template <class Produce>
Gather gather_produced(Stream& stream, const LinearSite& layer, Partition& p, OperandRequest own, const scaling::Pass& pass,
                       const Produce& produce) {
  if (!p.divides()) {
    Gather all{layer.operand(stream, own, pass), [](Stream&) {}};
    produce(all.operands);
    return all;
  }
  const DType dtype = layer.activations();
  ops::Sink rows =
      ops::make_sink(stream, {.format = dtype}, {.shape = {own.tokens, layer.in()}, .dtype = dtype, .category = Category::temporaries});
  produce(rows);
  own.values = rows.plain;
  return gather_operands(stream, layer, p, own, pass);
}

/// Linear::backward() of a layer of which each member has rows: dx [T/n, in] = the own rows of the sum over members, reduced beside the
/// weight's product. saved.x may still be gathered beside the stream.
void backward_and_reduce(Stream&, Linear&, Partition&, const ops::Sink& dy, const Linear::Saved&, const Tensor& dx, const scaling::Pass&);

}  // namespace octet::nn
