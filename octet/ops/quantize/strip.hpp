#pragma once

// Only for quantize.cpu.cpp: what happens to a strip, at most 128 x 128 values that stay in the first-level cache from their maxima
// to their codes.

#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/ops/quantize/transpose.hpp"
#include "octet/ops/sink/tile.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

using Partial = TileQuantizer::Partial;

inline constexpr int strip_size = 128;
inline constexpr int smallest_block = 32;
inline constexpr int whole = 31;  // a shift that makes any index 0

/// Values as they stand in memory.
template <class T>
struct Stored {
  using Type = T;
  template <class Cursor> OCTET_HD static Vec load(const T* p, Cursor c) { return Lane{}.load(p, c); }
};
/// f32 in memory, to be quantized as BF16.
struct RoundedToBf16 {
  using Type = float;
  template <class Cursor> OCTET_HD static Vec load(const float* p, Cursor c) { return round_to_bf16(Lane{}.load(p, c)); }
};

struct Strip {
  std::int64_t row0, col0;
  int rows, cols;
};

/// Maxima of a strip's blocks and what they give.
struct alignas(64) BlockScales {
  static constexpr int most = strip_size * strip_size / smallest_block;
  float amax[most], scale[most], descale[most];
  std::uint8_t code[most];

  /// Scales of blocks [at, at + n) from their maxima; raises the maximum and widens the range of scales seen.
  void derive(const ops::BlockRule& rule, int at, int n, bool seen_here, Partial& seen) {
    Lane{}.each(n, [&](auto c) {
      const auto s = ops::block_scale(load_raw<Vec>(amax + at, c), rule);
      store_raw(scale + at, c, s.scale), store_raw(descale + at, c, s.descale), store_raw(code + at, c, to_bytes(s.code));
    });
    for (int i = at; i < at + n; ++i) {
      seen.amax = larger(amax[i], seen.amax);
      if (!seen_here) continue;
      seen.scale_min = seen.scale_min == 0 ? scale[i] : smaller(scale[i], seen.scale_min);
      seen.scale_max = larger(scale[i], seen.scale_max);
    }
  }
};

/// Writes the descales of ni x nj blocks whose first is (i0, j0); block (i, j) is scales[i * si + j * sj].
inline void put_descales(const Quantized& q, std::int64_t i0, int ni, std::int64_t j0, int nj, const BlockScales& s, int si, int sj) {
  const auto stride = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  for (int i = 0; i < ni; ++i)
    for (int j = 0; j < nj; ++j) {
      const std::int64_t to = (i0 + i) * stride.row_block + (j0 + j) * stride.col_block;
      if (q.descales.dtype == DType::e8m0) q.descales.u8()[to] = s.code[i * si + j * sj];
      else q.descales.f32()[to] = s.descale[i * si + j * sj];
    }
}

/// The scale of each value of a strip. Along rows: one for every 2^shift columns of a row, `step` of them a row (0: rows share).
struct AlongRows {
  const float* s;
  int step, shift;
  OCTET_HD Vec operator()(int r, std::int64_t c) const { return splat<Vec>(s[r * step + int(c >> shift)]); }
};
/// Along columns: one for every 2^shift rows of a column.
struct AlongColumns {
  const float* s;
  int shift;
  OCTET_HD Vec operator()(int r, std::int64_t c) const { return load_raw<Vec>(s + (r >> shift) * strip_size, Full{c}); }
};

/// max |x| of n values.
template <class Source>
OCTET_HD float maximum(const typename Source::Type* x, std::int64_t n) {
  Vec most{};
  Lane{}.each(n, [&](auto c) { most = larger(magnitude(Source::load(x, c)), most); });
  return Lane{}.max(most);
}

/// amax[r * segments + s] of 2^shift columns each; returns the segments of a row.
template <class Source>
int row_maxima(const typename Source::Type* x, std::int64_t ld, const Strip& strip, int shift, float* amax) {
  const int n = 1 << shift, segments = (strip.cols + n - 1) >> shift;
  for (int r = 0; r < strip.rows; ++r)
    for (int s = 0; s < segments; ++s) {
      const int left = strip.cols - s * n;
      amax[r * segments + s] = maximum<Source>(x + r * ld + s * n, left < n ? left : n);
    }
  return segments;
}

/// amax[g * 128 + c] of 2^shift rows each, raised from what stands there.
template <class Source>
void column_maxima(const typename Source::Type* x, std::int64_t ld, const Strip& strip, int shift, float* amax) {
  const int n = shift == whole ? strip.rows : 1 << shift;
  Lane{}.each(strip.cols, [&](auto c) {
    for (int g = 0; g * n < strip.rows; ++g) {
      Vec most = load_raw<Vec>(amax + g * strip_size, c);
      for (int r = g * n; r < strip.rows && r < (g + 1) * n; ++r) most = larger(magnitude(Source::load(x + r * ld, c)), most);
      store_raw(amax + g * strip_size, c, most);
    }
  });
}

template <class Source>
float strip_maximum(const typename Source::Type* x, std::int64_t ld, const Strip& strip) {
  float most = 0;
  for (int r = 0; r < strip.rows; ++r) most = larger(maximum<Source>(x + r * ld, strip.cols), most);
  return most;
}

OCTET_HD std::int64_t total(IntVec v) {
  std::int64_t sum = 0;
  for (int i = 0; i < width; ++i) sum += v[i];
  return sum;
}

/// Codes of a strip, 128 bytes a row. Adds to the health counts.
template <class Source, class Format, class Scale>
void encode_strip(const typename Source::Type* x, std::int64_t ld, const Strip& strip, const Scale& scale, bool count, std::uint8_t* codes, Partial& seen) {
  ops::HealthCounts<Vec> n;
  for (int r = 0; r < strip.rows; ++r)
    Lane{}.each(strip.cols, [&](auto c) {
      const IntVec code = ops::encode_counted<Format>(Source::load(x + r * ld, c), scale(r, c.at), n);
      store_raw(codes + r * strip_size, Full{c.at}, to_bytes(code));
    });
  if (count) seen.saturated += total(n.saturated), seen.flushed += total(n.flushed), seen.nonfinite += total(n.nonfinite);
}

/// Adds x^2 and (x - dequantized)^2 of a strip's finite values.
template <class Source, class Format, class Scale>
void measure_strip(const typename Source::Type* x, std::int64_t ld, const Strip& strip, const Scale& descale, const std::uint8_t* codes, Partial& seen) {
  typedef double Wide __attribute__((vector_size(8 * width)));
  for (int r = 0; r < strip.rows; ++r) {
    Wide signal{}, noise{};
    Lane{}.each(strip.cols, [&](auto c) {
      const Vec v = Source::load(x + r * ld, c);
      const Vec d = decode_lanes<Format, Vec>(widen(load_raw<ByteVec>(codes + r * strip_size, c))) * descale(r, c.at);
      const IntVec finite = (int_of(v) & 0x7FFFFFFF) < 0x7F800000;
      const Wide a = __builtin_convertvector(value_of<Vec>(IntVec(int_of(v) & finite)), Wide);
      const Wide b = __builtin_convertvector(value_of<Vec>(IntVec(int_of(d) & finite)), Wide);
      signal += a * a, noise += (a - b) * (a - b);
    });
    for (int i = 0; i < width; ++i) seen.signal += signal[i], seen.noise += noise[i];
  }
}

}  // namespace octet::cpu::OCTET_ISA
