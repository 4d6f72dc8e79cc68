#pragma once

// Only for *.cpu.cpp files: the lanes of a group of 128 values, which one thread has in SIMD registers or in its nearest cache.

#include "octet/ops/stored/codec.math.hpp"
#include "octet/ops/stored/cpu/codes.hpp"

namespace octet::cpu::OCTET_ISA {

/// 16 random bits per element, generated in advance: those of element `first` + i are halves[i].
struct DrawnHalves {
  const std::uint16_t* halves;
  std::int64_t first;
};

/// How many groups ahead of the one that is computed a kernel calls prefetch().
inline constexpr std::int64_t groups_ahead = 16;

/// The values of a group.
struct GroupValues {
  Vec v[int(storage_block) / width];
};

/// whole: for calls with groups of 128 values that all exist.
template <bool whole>
struct GroupLaneOf : Lane {
  static constexpr int packs = int(storage_block) / width;
  using Group = GroupValues;

  /// f(i, cursor) for pack i of the group.
  template <class F>
  OCTET_HD void each_pack(std::int64_t count, std::int64_t group, const F& f) const {
    const std::int64_t begin = group * storage_block, n = count - begin;
    if (whole || n >= storage_block) {
      for (int i = 0; i < packs; ++i) f(i, Full{begin + i * width});
    } else if constexpr (!whole) {
      for (int i = 0; i * width < n; ++i) f(i, Part{begin + i * width, n - i * width < width ? int(n - i * width) : width});
    }
  }
  /// The same, with zeros in x where a group ends early.
  template <class F>
  OCTET_HD void each_pack(std::int64_t count, std::int64_t group, Group& x, const F& f) const {
    if (!whole && count - group * storage_block < storage_block)
      for (Vec& v : x.v) v = Vec{};
    each_pack(count, group, f);
  }
  OCTET_HD bool first_of_group() const { return true; }

  /// Asks the L2 cache for the codes of a group, which may not exist. The processor does so by itself only within a page.
  template <Storage storage>
  OCTET_HD void prefetch(const ops::StoredView& s, std::int64_t group) const {
    prefetch(s.codes, std::int64_t(size_of(code_type(storage))), group);
  }
  OCTET_HD void prefetch(const void* values, std::int64_t value_bytes, std::int64_t group) const {
    const std::int64_t bytes = storage_block * value_bytes;
    const char* const at = static_cast<const char*>(values) + group * bytes;
    for (std::int64_t i = 0; i < bytes; i += 64) _mm_prefetch(at + i, _MM_HINT_T1);
  }

  template <class F>
  OCTET_HD Vec map(Vec x, const F& f) const {
    return f(x);
  }
  /// x * scale; with Tiny::keep, magnitudes other than 0 are at least `least`.
  OCTET_HD SignedSizes scaled(Vec x, float scale, Tiny tiny, float least) const {
    SignedSizes y(x * scale);
    if (tiny == Tiny::keep) y.keep_above(least);
    return y;
  }
  /// max |x| over the group, of finite values.
  OCTET_HD float own_amax(const Group& x) const {
    IntVec sizes = int_of(magnitude(x.v[0]));  // which are ordered as magnitudes are, below infinity and NaN
    for (int i = 1; i < packs; ++i) sizes = larger(int_of(magnitude(x.v[i])), sizes);
    if (none_above(sizes, 0x7F7FFFFF)) [[likely]]
      return max(value_of<Vec>(sizes));
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
    return load_times(p, c, 1.0f);
  }
  /// Their product with a factor.
  template <class Cursor>
  OCTET_HD Vec load_times(const std::uint8_t* p, Cursor c, float factor) const {
    return decode_e4m3(load_raw<ByteVec>(p, c), factor);
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
  OCTET_HD void store(Fp16* p, Cursor c, SignedSizes v, ops::Nearest) const {
    Lane::store(p, c, ops::saturated(v.values(), Fp16::max));
  }
  template <class Cursor>
  OCTET_HD void store(Fp16* p, Cursor c, SignedSizes v, const DrawnHalves& draws) const {
    store_raw(p, c, encode_fp16_drawn(v, random(c, draws)));
  }
  template <class Cursor>
  OCTET_HD void store(std::uint8_t* p, Cursor c, SignedSizes v, ops::Nearest) const {
    store_raw(p, c, encode_e4m3(v));
  }
  template <class Cursor>
  OCTET_HD void store(std::uint8_t* p, Cursor c, SignedSizes v, const DrawnHalves& draws) const {
    store_raw(p, c, encode_e4m3_drawn(v, random(c, draws)));
  }

 private:
  OCTET_HD static Full moved(Full c, std::int64_t by) { return {c.at + by}; }
  OCTET_HD static Part moved(Part c, std::int64_t by) { return {c.at + by, c.count}; }
  template <class Cursor>
  OCTET_HD static IntVec random(Cursor c, const DrawnHalves& draws) {
    return widen(load_raw<HalfVec>(draws.halves, moved(c, -draws.first)));
  }
};
using GroupLane = GroupLaneOf<false>;

}  // namespace octet::cpu::OCTET_ISA
