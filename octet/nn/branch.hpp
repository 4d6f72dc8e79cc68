#pragma once

#include "octet/nn/gathered.hpp"

namespace octet::nn {

/// Linear::backward() of the last layer of a branch: dx [T, in] of all rows, from the own rows of dy. Of several members, three exchanges
/// and products are beside each other:
///
///   gather of dy            beside rebuild(saved), which makes the layer's own operand again where forward did not keep it
///   gather_x, if not empty  of the branch's input, beside this product: it is joined by the product of the branch's first layer
template <class Rebuild>
void backward_of_branch(Stream& stream, Linear& last, Partition& p, const Tensor& dy, Linear::Saved saved, const SideWork::Work& gather_x,
                        const Tensor& dx, const scaling::Pass& pass, const Rebuild& rebuild) {
  const Scope scope(stream), rebuilding(stream, scaling::recomputing.keep);
  const Gather gradient = gather_operands(stream, last, p, {.tensor = Operand::gradient, .values = dy}, pass);
  const SideWork::Piece gathered = p.beside().begin(stream, gradient.fill);
  rebuild(saved);
  if (gather_x) p.beside().begin(stream, gather_x);
  p.beside().pause();
  p.beside().join(stream, gathered);
  last.backward(stream, gradient.operands, saved, dx, pass.later);
}

}  // namespace octet::nn
