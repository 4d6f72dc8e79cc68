#pragma once

#include "octet/tensor/arena.hpp"

namespace octet::scaling {

/// What a forward is for. Modules keep what backward needs when they are given a place for it, in region `keep`.
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

/// What a backward runs that computes again what forward did not keep.
inline constexpr Pass recomputing{.kind = Pass::Kind::recompute};

}  // namespace octet::scaling
