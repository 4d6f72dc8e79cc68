#pragma once

#include "octet/tensor/deferred_work.hpp"

namespace octet::scaling {

/// The purpose of a forward and its backward. Modules store tensors for backward in region `keep`, if they get a place for them.
struct Pass {
  enum class Kind : std::uint8_t {
    train,      // quantizers record maxima and health
    recompute,  // the same values again, for a backward: records nothing
    evaluate,   // changes no state at all
  };
  Kind kind = Kind::evaluate;
  Region keep = Lifetime::micro_batch;
  bool count = true;              // also count what saturates and what becomes 0
  bool measure_noise = false;     // also sum the squares that give SQNR: costs about one more decode
  DeferredWork* later = nullptr;  // for the products of weights' gradients, which backward leaves there; none: it computes them at once

  bool records() const { return kind == Kind::train; }
  /// Where operands of weights' gradients live: those that forward saves, or recomputes, and those that backward makes.
  Region forward_operands() const { return later != nullptr ? later->region() : keep; }
  Region backward_operands() const { return later != nullptr ? later->region() : Region(Lifetime::scratch); }
};

/// The pass in which backward recomputes tensors that forward did not keep.
inline constexpr Pass recomputing{.kind = Pass::Kind::recompute};
/// The same for the backward of this pass.
inline Pass recomputing_for(const Pass& backward) { return {.kind = Pass::Kind::recompute, .later = backward.later}; }

}  // namespace octet::scaling
