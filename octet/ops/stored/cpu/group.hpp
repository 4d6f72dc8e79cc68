#pragma once

// Only for *.cpu.cpp files: the lanes of a group of 128 values, which one thread has in SIMD registers or in its nearest cache.

#include "octet/numerics/drawn.hpp"
#include "octet/ops/stored/codec.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

/// 16 random bits per element, generated in advance: those of element `first` + i are halves[i].
struct DrawnHalves {
  const std::uint16_t* halves;
  std::int64_t first;
};

struct GroupLane : Lane {
  static constexpr int packs = int(storage_block) / width;
  struct Group {
    Vec v[packs];
  };

  /// f(i, cursor) for pack i of the group.
  template <class F>
  OCTET_HD void each_pack(std::int64_t count, std::int64_t group, const F& f) const {
    const std::int64_t begin = group * storage_block, n = count - begin;
    if (n >= storage_block) {
      for (int i = 0; i < packs; ++i) f(i, Full{begin + i * width});
    } else {
      for (int i = 0; i * width < n; ++i) f(i, Part{begin + i * width, n - i * width < width ? int(n - i * width) : width});
    }
  }
  /// The same, with zeros in x where a group ends early.
  template <class F>
  OCTET_HD void each_pack(std::int64_t count, std::int64_t group, Group& x, const F& f) const {
    if (count - group * storage_block < storage_block)
      for (Vec& v : x.v) v = Vec{};
    each_pack(count, group, f);
  }
  OCTET_HD bool first_of_group() const { return true; }

  template <class F>
  OCTET_HD Vec map(Vec x, const F& f) const {
    return f(x);
  }
  /// x * scale; with Tiny::keep, magnitudes other than 0 are at least `least`.
  OCTET_HD Vec scaled(Vec x, float scale, Tiny tiny, float least) const {
    const Vec y = x * scale;
    return tiny == Tiny::keep ? ops::kept_above(y, least) : y;
  }
  /// max |x| over the group, of finite values.
  OCTET_HD float own_amax(const Group& x) const {
    Vec most = ops::finite_magnitude(x.v[0]);
    for (int i = 1; i < packs; ++i) most = larger(ops::finite_magnitude(x.v[i]), most);
    return max(most);
  }
  OCTET_HD float group_max(float most) const { return most; }
  OCTET_HD float group_max(Vec most) const { return max(most); }
  OCTET_HD float group_min(Vec least) const {
    return fold(least, [](auto upper, auto lower) { return upper < lower ? upper : lower; });
  }

  using Lane::load;
  /// E4M3.
  template <class Cursor>
  OCTET_HD Vec load(const std::uint8_t* p, Cursor c) const {
    return load(reinterpret_cast<const E4M3*>(p), c);
  }

  template <class Cursor, class Draws>
  OCTET_HD void store(float* p, Cursor c, Vec v, const Draws&) const {
    store_raw(p, c, v);
  }
  template <class Cursor>
  OCTET_HD void store(Bf16* p, Cursor c, Vec v, ops::Nearest) const {
    Lane::store(p, c, v);
  }
  template <class Cursor>
  OCTET_HD void store(Bf16* p, Cursor c, Vec v, const DrawnHalves& draws) const {
    store_drawn(p + draws.first, moved(c, -draws.first), v, draws.halves);
  }
  template <class Cursor>
  OCTET_HD void store(Fp16* p, Cursor c, Vec v, ops::Nearest) const {
    Lane::store(p, c, ops::saturated(v, Fp16::max));
  }
  template <class Cursor>
  OCTET_HD void store(Fp16* p, Cursor c, Vec v, const DrawnHalves& draws) const {
    store_raw(p, c, to_halves(encode_fp16_drawn_lanes(v, random(c, draws))));
  }
  template <class Cursor>
  OCTET_HD void store(std::uint8_t* p, Cursor c, Vec v, ops::Nearest) const {
    store_raw(p, c, to_bytes(encode_lanes<E4M3>(ops::infinite_as_nan(v))));
  }
  template <class Cursor>
  OCTET_HD void store(std::uint8_t* p, Cursor c, Vec v, const DrawnHalves& draws) const {
    store_raw(p, c, to_bytes(encode_drawn_lanes<E4M3>(ops::infinite_as_nan(v), random(c, draws))));
  }

 private:
  OCTET_HD static Full moved(Full c, std::int64_t by) { return {c.at + by}; }
  OCTET_HD static Part moved(Part c, std::int64_t by) { return {c.at + by, c.count}; }
  template <class Cursor>
  OCTET_HD static IntVec random(Cursor c, const DrawnHalves& draws) {
    return widen(load_raw<HalfVec>(draws.halves, moved(c, -draws.first)));
  }
};

}  // namespace octet::cpu::OCTET_ISA
