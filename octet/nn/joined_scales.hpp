#pragma once

#include <span>

#include "octet/nn/partition.hpp"
#include "octet/ops/quantize/slice.hpp"

namespace octet::nn {

/// The own part of a tensor whose scales follow from the maxima of all parts.
struct JoinedScales {
  StoredSlice own;
  ops::QuantizeSpec spec;   // its scale is not known
  Tensor scales, descales;  // f32 in the layout of the descales; may be one memory with those of other tensors
};

/// Scales and descales of all these tensors:
///
///   m[b] = max |own values in block b|;   join();   scales[b], descales[b] = those that the spec gives for m[b]
///
/// join() replaces m, which is in `scales`, by the maxima over all parts: one collective serves all tensors. Codes and scales are then
/// those of the whole tensor, bit by bit. Source: see ops/quantize/slice.hpp.
template <class Join>
void find_scales(Stream& stream, std::span<const JoinedScales> tensors, const Join& join) {
  for (const JoinedScales& t : tensors) ops::slice_maxima(stream, t.own, t.spec.rows, t.scales);
  join();
  for (const JoinedScales& t : tensors) ops::scales_of_maxima(stream, t.spec, t.own.stored.value_type(), t.scales, t.scales, t.descales);
}

/// Whether members find the scale of a tensor together. All of them then make the same calls in the same order.
inline bool finds_scale_together(const Partition& p, const ops::QuantizeSpec& spec) {
  return p.divides() && spec.encodes_slices() && spec.rows.whole_tensor() && !spec.scale_known();
}

/// The one scale of a tensor of which each member has a part.
inline void find_scale(Stream& stream, Partition& p, const JoinedScales& tensor) {
  find_scales(stream, std::span(&tensor, 1), [&] { p.max(stream, tensor.scales); });
}

}  // namespace octet::nn
