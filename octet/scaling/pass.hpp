#pragma once

#include "octet/tensor/arena.hpp"

namespace octet::scaling {

/// The purpose of a forward. Modules store tensors for backward in region `keep`, if they get a place for them.
struct Pass {
  enum class Kind : std::uint8_t {
    train,      // quantizers record maxima and health
    recompute,  // the same values again, for a backward: records nothing
    evaluate,   // changes no state at all
  };
  Kind kind = Kind::evaluate;
  Region keep = Lifetime::micro_batch;
  bool count = true;           // also count what saturates and what becomes 0
  bool measure_noise = false;  // also sum the squares that give SQNR: costs about one more decode

  bool records() const { return kind == Kind::train; }
};

/// The pass in which backward recomputes tensors that forward did not keep.
inline constexpr Pass recomputing{.kind = Pass::Kind::recompute};

}  // namespace octet::scaling
