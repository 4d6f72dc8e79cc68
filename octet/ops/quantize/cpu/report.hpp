#pragma once

// Only for *.cpu.cpp files of this op: what threads saw of a tensor, joined and added to the quantizer's measurements.

#include "octet/ops/quantize/cpu/tile.hpp"

namespace octet::cpu::OCTET_ISA {

inline void merge(TileQuantizer::Partial& into, const TileQuantizer::Partial& p) {
  into.amax = larger(p.amax, into.amax), into.finite &= p.finite;
  if (p.scale_max > 0) {
    into.scale_min = into.scale_max == 0 ? p.scale_min : smaller(p.scale_min, into.scale_min);
    into.scale_max = larger(p.scale_max, into.scale_max);
  }
  into.saturated += p.saturated, into.flushed += p.flushed, into.nonfinite += p.nonfinite;
  into.signal += p.signal, into.noise += p.noise, into.blocks.add(p.blocks);
}

/// Raises spec.amax and adds `values` values to *spec.health.
inline void report(const ops::QuantizeSpec& spec, const TileQuantizer::Partial& all, std::int64_t values) {
  if (spec.amax) *spec.amax.f32() = larger(all.amax, *spec.amax.f32());
  ops::QuantizeHealth* const h = spec.health;
  if (h == nullptr) return;
  h->scale_min = h->scale_max == 0 ? all.scale_min : smaller(all.scale_min, h->scale_min);
  h->scale_max = larger(all.scale_max, h->scale_max);
  h->values += values;
  if (spec.count) h->saturated += all.saturated, h->flushed += all.flushed;
  h->nonfinite += all.nonfinite;
  h->signal += all.signal, h->noise += all.noise, h->blocks.add(all.blocks);
}

}  // namespace octet::cpu::OCTET_ISA
