#pragma once

#include "octet/ops/stored/codec.math.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::ops {

/// f(codec) for the storages of a sum.
template <class F>
OCTET_HD void with_sum_codec(Storage s, const F& f) {
  switch (s) {
    case Storage::f32: return f(PlainCodec<float>{});
    case Storage::bf16: return f(PlainCodec<Bf16>{});
    case Storage::e4m3: return f(E4m3Codec{});
    default: return f(E4m3TensorCodec{});
  }
}

/// Part r of `parts`, where each has n values.
OCTET_HD StoredView part_of(const StoredView& parts, std::int64_t r, std::int64_t n) {
  StoredView part = parts;
  const std::int64_t bytes = parts.storage == Storage::f32 ? 4 : parts.storage == Storage::bf16 ? 2 : 1;
  part.codes = static_cast<std::uint8_t*>(parts.codes) + r * n * bytes;
  if (parts.storage == Storage::e4m3) part.scales = parts.block_descales() + r * groups_of(n);
  part.count = n;
  return part;
}

/// The parts of a sum: one after the other, then single ones.
struct Addends {
  StoredView parts;
  StoredView more[StoredSum::most_more];
  int count = 0;  // of `more`
};
inline Addends addends_of(const StoredSum& a) {
  Addends out{.parts = view_of(a.parts), .more = {}};
  for (const Stored& m : a.more) out.more[out.count++] = view_of(m);
  return out;
}

/// total += a group of values.
template <class Codec, class Lanes>
OCTET_HD void add_group(Codec codec, Lanes lanes, const StoredView& values, std::int64_t group, typename Lanes::Group& total) {
  typename Lanes::Group x;
  load_group(codec, lanes, values, group, x);
  for (int i = 0; i < Lanes::packs; ++i) total.v[i] = total.v[i] + x.v[i];
}

/// total = the sum of a group over all parts, and before them over `sum` if it is added to. Formula in stored_sum.hpp.
template <class Codec, class SumCodec, class Lanes>
OCTET_HD void sum_parts(Codec codec, SumCodec sum_codec, Lanes lanes, const Addends& a, const StoredView& sum, bool adds,
                        std::int64_t group, typename Lanes::Group& total) {
  const std::int64_t n = sum.count, count = a.parts.count / (n > 0 ? n : 1);
  if (adds) load_group(sum_codec, lanes, sum, group, total);
  else load_group(codec, lanes, part_of(a.parts, 0, n), group, total);
  for (std::int64_t r = adds ? 0 : 1; r < count; ++r) add_group(codec, lanes, part_of(a.parts, r, n), group, total);
  for (int m = 0; m < a.count; ++m) add_group(codec, lanes, a.more[m], group, total);
}

/// Whether a code is the largest, and whether one of a value other than 0 is 0.
OCTET_HD constexpr bool is_largest(std::uint8_t code) { return (code & 0x7F) == E4M3::max_code; }
OCTET_HD constexpr bool is_flushed(std::uint8_t code, float value) { return (code & 0x7F) == 0 && value != 0; }

}  // namespace octet::ops
