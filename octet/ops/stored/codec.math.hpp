#pragma once

#include "octet/ops/stored/e4m3.math.hpp"
#include "octet/ops/stored/expanded.math.hpp"
#include "octet/ops/stored/plain.math.hpp"
#include "octet/ops/stored/root.math.hpp"
#include "octet/ops/stored/tensor_scaled.math.hpp"

// The seam between kernels and storages. A kernel walks a variable in groups of 128 values (on a CPU one thread has a group, on a GPU 16
// threads of 8 values) and calls
//   load_group(lanes, view, group, x)            x = the decoded values, 0 beyond the end
//   store_group(lanes, view, group, x, draws)    encodes x with the scales of x; draws: Nearest{}, or the lanes' random bits
// with lanes of ops/stored/cpu/group.hpp or ops/stored/cuda/group.cuh. On a GPU all 16 threads of a group must call. Codes of
// what lanes.scaled() returns are stored by lanes.store(), which saturates finite values; infinity and NaN become E4M3's NaN, and stay in
// FP16.
//
// A codec is a struct of static functions:
//   stored(view, group)                    the scalars of a stored group
//   choose(lanes, view, values)            the scalars with which these values will be stored
//   keep(view, group, scalars)             writes them; called on one lane
//   decode(lanes, view, scalars, cursor)   the values under a cursor
//   encode(lanes, view, scalars, cursor, values, draws)
// A new storage is such a file, its row of facts in tensor/storage.hpp and its lines below.

namespace octet::ops {

/// The codec of a storage.
template <Storage s>
OCTET_HD constexpr auto codec_of() {
  if constexpr (s == Storage::f32) return PlainCodec<float>{};
  else if constexpr (s == Storage::bf16 || s == Storage::bf16_nearest) return PlainCodec<Bf16>{};
  else if constexpr (s == Storage::f16) return F16Codec{};
  else if constexpr (s == Storage::e4m3) return E4m3Codec{};
  else if constexpr (s == Storage::e4m3_tensor) return E4m3TensorCodec{};
  else if constexpr (s == Storage::e4m3_expanded) return ExpandedCodec{};
  else return RootCodec{};
}
/// f(codec) for the codec of a storage.
template <class F>
OCTET_HD void with_codec(Storage s, const F& f) {
  switch (s) {
    case Storage::f32: return f(codec_of<Storage::f32>());
    case Storage::bf16:
    case Storage::bf16_nearest: return f(codec_of<Storage::bf16>());
    case Storage::f16: return f(codec_of<Storage::f16>());
    case Storage::e4m3: return f(codec_of<Storage::e4m3>());
    case Storage::e4m3_tensor: return f(codec_of<Storage::e4m3_tensor>());
    case Storage::e4m3_expanded: return f(codec_of<Storage::e4m3_expanded>());
    case Storage::e4m3_root: return f(codec_of<Storage::e4m3_root>());
  }
}

/// Both for a codec that the caller knows.
template <class Codec, class Lanes>
OCTET_HD void load_group(Codec codec, Lanes lanes, const StoredView& s, std::int64_t group, typename Lanes::Group& x) {
  const auto scalars = codec.stored(s, group < groups_of(s.count) ? group : 0);
  lanes.each_pack(s.count, group, x, [&](int i, auto at) { x.v[i] = codec.decode(lanes, s, scalars, at); });
}
template <class Codec, class Lanes, class Draws>
OCTET_HD void store_group(Codec codec, Lanes lanes, const StoredView& s, std::int64_t group, const typename Lanes::Group& x,
                          const Draws& draws) {
  const auto scalars = codec.choose(lanes, s, x);
  lanes.each_pack(s.count, group, [&](int i, auto at) { codec.encode(lanes, s, scalars, at, x.v[i], draws); });
  if (lanes.first_of_group() && group < groups_of(s.count)) codec.keep(s, group, scalars);
}

template <class Lanes>
OCTET_HD void load_group(Lanes lanes, const StoredView& s, std::int64_t group, typename Lanes::Group& x) {
  with_codec(s.storage, [&](auto codec) { load_group(codec, lanes, s, group, x); });
}
template <class Lanes, class Draws>
OCTET_HD void store_group(Lanes lanes, const StoredView& s, std::int64_t group, const typename Lanes::Group& x, const Draws& draws) {
  with_codec(s.storage, [&](auto codec) { store_group(codec, lanes, s, group, x, draws); });
}

}  // namespace octet::ops
