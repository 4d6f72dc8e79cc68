#pragma once

// Only for quantize.cpu.cpp and slice.cpu.cpp: encoding of a strip of at most 128 x 128 values.

#include "octet/numerics/in_range.hpp"
#include "octet/numerics/scale.hpp"
#include "octet/ops/quantize/quantize.math.hpp"
#include "octet/ops/quantize/cpu/transpose.hpp"
#include "octet/ops/quantize/cpu/values.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/tensor/cpu/pair.hpp"

namespace octet::cpu::OCTET_ISA {

using Partial = TileQuantizer::Partial;

inline constexpr int strip_size = 128;
inline constexpr int smallest_block = 32;
inline constexpr int whole = 31;  // a shift that makes any index 0

/// Where a strip lies in the matrix. Its values are always 128 columns wide, with zeros beyond `cols`.
struct Strip {
  std::int64_t row0, col0;
  int rows, cols;
};

/// Maxima of a strip's blocks and their scales.
struct alignas(64) BlockScales {
  static constexpr int most = strip_size * strip_size / smallest_block;
  float amax[most]{}, scale[most]{}, descale[most]{};
  std::uint8_t code[most]{};

  /// Scales of blocks [at, at + n) from their maxima. Raises the maximum and, when it counts, widens the range of scales seen.
  /// True when some value can land beyond the format's largest, or a decoded one below BF16's range.
  bool derive(const BlockRule& rule, int at, int n, bool counts, Partial& seen) {
    Vec top{}, least = splat<Vec>(__builtin_inff()), greatest{}, encoded{};
    Lane{}.each(n, [&](auto c) {
      const Vec a = load_raw<Vec>(amax + at, c);
      const auto s = block_scale(a, rule);
      store_raw(scale + at, c, s.scale), store_raw(descale + at, c, s.descale), store_raw(code + at, c, to_bytes(s.code));
      top = larger(a, top), encoded = larger(Vec(a * s.scale), encoded);
      least = smaller(Lane{}.within(s.scale, c, __builtin_inff()), least), greatest = larger(Lane{}.within(s.scale, c), greatest);
    });
    seen.amax = larger(Lane{}.max(top), seen.amax);
    const float high = Lane{}.max(greatest);
    if (counts && n > 0) {
      const float low = -Lane{}.max(-least);
      seen.scale_min = seen.scale_max == 0 ? low : smaller(low, seen.scale_min);
      seen.scale_max = larger(high, seen.scale_max);
    }
    return Lane{}.max(encoded) > rule.format_max || high > ops::largest_exact_scale;
  }
};

/// Writes the descales of ni x nj blocks whose first is (i0, j0); block (i, j) is scales[i * si + j * sj].
inline void put_descales(const Quantized& q, std::int64_t i0, int ni, std::int64_t j0, int nj, const BlockScales& s, int si, int sj) {
  if (!q.descales) return;  // decoded: they are in the values
  const auto stride = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  const std::int64_t at = i0 * stride.row_block + j0 * stride.col_block;
  const auto put = [&](auto* to, const auto* from) {
    for (int i = 0; i < ni; ++i)
      for (int j = 0; j < nj; ++j) to[i * stride.row_block + j * stride.col_block] = from[i * si + j * sj];
  };
  if (q.descales.dtype == DType::e8m0) put(q.descales.u8() + at, s.code);
  else put(q.descales.f32() + at, s.descale);
}

/// The scale of each value of a strip. Along rows: one for every 2^shift columns of a row, `step` of them a row (0: rows share).
struct AlongRows {
  const float* s;
  int step, shift;
  OCTET_HD Vec operator()(int r, int c) const { return splat<Vec>(s[r * step + (c >> shift)]); }
  template <PairOrder>
  OCTET_HD Pair pair(int r, int c) const {
    return {(*this)(r, c), (*this)(r, c)};
  }
};
static_assert(pair_width <= smallest_block);
/// Along columns: one for every 2^shift rows of a column.
struct AlongColumns {
  const float* s;
  int shift;
  OCTET_HD const float* of_row(int r) const { return s + (r >> shift) * strip_size; }
  OCTET_HD Vec operator()(int r, int c) const { return load_raw<Vec>(of_row(r), Full{c}); }
  template <PairOrder order>
  OCTET_HD Pair pair(int r, int c) const {
    return load_pair<order>(of_row(r) + c);
  }
};

/// The same of a strip that was transposed: a register of its row c holds the values of column c from row r on.
struct Turned {
  const float* s;
  int row_step, col_step, shift;
  OCTET_HD explicit Turned(const AlongRows& a) : s(a.s), row_step(0), col_step(0), shift(whole) {}  // one for all
  OCTET_HD explicit Turned(const AlongColumns& a) : s(a.s), row_step(strip_size), col_step(1), shift(a.shift) {}
  OCTET_HD Vec operator()(int c, int r) const { return splat<Vec>(s[(r >> shift) * row_step + c * col_step]); }
};

/// Rows of values or codes: the first, and how many values lie from one to the next.
template <class T>
struct Rows {
  T* at = nullptr;
  std::int64_t stride = 0;
  OCTET_HD T* operator[](int r) const { return at + r * stride; }
};

/// Where a strip's codes or values go in one orientation: the first byte, bytes from row to row, rows, cache lines of a row; nowhere when
/// null.
struct Place {
  std::byte* at = nullptr;
  std::int64_t stride = 0;
  int rows = 0, lines = 0;

  template <class T>
  Rows<T> as() const {
    return {reinterpret_cast<T*>(at), stride / std::int64_t(sizeof(T))};
  }
  /// Prefetches every step-th row from r on for writing.
  OCTET_HD void prefetch(int r, int step) const {
    for (; r < rows; r += step)
      for (int i = 0; i < lines; ++i) __builtin_prefetch(at + r * stride + i * 64, 1, 3);
  }
};

/// Prefetches, row by row while a strip is encoded, the values to its right and the lines of its codes. No processor foresees a walk over
/// 128 rows. Addresses beyond the matrix do no harm.
template <class T>
struct Ahead {
  const T* values;
  std::int64_t row_length;
  Place rows, cols;

  OCTET_HD void operator()(int r, int of) const {
    constexpr int line = 64, lines = strip_size * int(sizeof(T)) / line;
    const char* const right = reinterpret_cast<const char*>(values + r * row_length + strip_size);
    for (int i = 0; i < lines; ++i) __builtin_prefetch(right + i * line, 0, 2);
    rows.prefetch(r, of), cols.prefetch(r, of);
  }
};

/// amax[r * segments + s] of 2^shift columns each; `segments` of them hold values.
template <class Source>
void row_maxima(const Source& source, const typename Source::Type* x, std::int64_t ld, int rows, int shift, int segments, float* amax) {
  for (int r = 0; r < rows; ++r)
    for (int s = 0; s < segments; ++s) amax[r * segments + s] = maximum(source, x + r * ld + (s << shift), 1 << shift);
}

/// amax[c] of one column each over n rows, raised from the stored value.
template <class Source>
void column_maxima(const Source& source, const typename Source::Type* x, std::int64_t ld, int n, float* amax) {
  constexpr int lanes = raw_lanes<Source>, packs = strip_size / lanes;
  typename Source::Raw most[packs]{};
  constexpr int ahead = 16;
  for (int r = 0; r < n; ++r) {
    for (int p = 0; p < packs; ++p) __builtin_prefetch(x + (r + ahead) * ld + p * lanes, 0, 2);
    for (int p = 0; p < packs; ++p) most[p] = raise(source.raw(x + r * ld, Full{p * lanes}), most[p]);
  }
  for (int p = 0; p < packs; ++p) {
    alignas(64) float values[lanes];
    source.magnitudes_of(most[p], values);
    for (int i = 0; i < lanes; ++i) {
      float& a = amax[p * lanes + i];
      a = int_of(values[i]) > int_of(a) ? values[i] : a;
    }
  }
}

/// max |x| of a strip; above every finite value when one is infinite or NaN.
template <class Source>
float strip_maximum(const Source& source, const typename Source::Type* x, std::int64_t ld, int rows) {
  typename Source::Raw most{};
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < strip_size; c += raw_lanes<Source>) most = raise(source.raw(x + r * ld, Full{c}), most);
  return source.magnitude_of(largest(most));
}

OCTET_HD bool is_finite(float magnitude) { return int_of(magnitude) < 0x7F800000; }
OCTET_HD bool all_finite(const float* magnitudes, int n) {
  bool all = true;
  for (int i = 0; i < n; ++i) all &= is_finite(magnitudes[i]);
  return all;
}

/// Whether values up to amax are in range of one scale.
template <class Format>
bool fits(float amax, float scale) {
  return amax * scale <= Format::nearest_to_max && scale <= ops::largest_exact_scale;
}

OCTET_HD std::int64_t total(IntVec v) {
  std::int64_t sum = 0;
  for (int i = 0; i < width; ++i) sum += v[i];
  return sum;
}

/// How a pair of a source's values is taken where T is made of them.
template <class Source, class T>
inline constexpr PairOrder order_of =
    std::is_same_v<typename Source::Type, Bf16> && !std::is_same_v<T, float> ? PairOrder::interleaved : PairOrder::halves;

/// The codes of a pair of values, none of which is NaN or beyond the format's largest.
template <class Format>
struct EncodedPair {
  InRange<Format, Vec> a, b;
  OCTET_HD EncodedPair(Pair v, Pair scale) : a(v.a * scale.a), b(v.b * scale.b) {}
  OCTET_HD Pair values(Pair descale) const { return {a.value() * descale.a, b.value() * descale.b}; }
  template <PairOrder order>
  OCTET_HD void store_codes_at(std::uint8_t* to) const {
    store_codes<order>(to, a.code(), b.code());
  }
  /// Subtracts 1 in every lane where a value became 0.
  OCTET_HD void count(Pair v, IntVec& minus) const {
    minus += ((a.size() == Vec{}) & (v.a != Vec{})) + ((b.size() == Vec{}) & (v.b != Vec{}));
  }
};

/// Adds n scales to the sums of their logarithms; `amax`: those of blocks of zeros are left out, or null.
inline void see_scales(const float* scale, const float* amax, int n, ops::BlockHealth& seen) {
  for (int i = 0; i < n; ++i) {
    if (amax != nullptr && !(amax[i] > 0)) continue;
    const std::int64_t log = ops::log_units(scale[i]);
    ++seen.scales, seen.log_scale += log, seen.log_scale_squares += log * log;
  }
}
/// Compares the codes of a strip's blocks with its values. A block has 2^shift columns of `rows` rows; `segments` of them are side by
/// side, and lie in the matrix.
template <class Format, class Source>
void compare_blocks(const Source& source, const typename Source::Type* x, std::int64_t ld, const Strip& s, int rows, int shift,
                    int segments, const float* scale, const std::uint8_t* codes, ops::BlockHealth& seen) {
  for (int block = 0; block < s.rows / rows * segments; ++block) {
    const int row = block / segments * rows, col = (block % segments) << shift;
    ops::HealthCounts<Vec> n;
    for (int r = row; r < row + rows; ++r)
      for (int c = col; c < col + (1 << shift); c += width)
        ops::count_health<Format>(source.load(x + r * ld, Full{c}), splat<Vec>(scale[block]),
                                  IntVec(widen(load_raw<ByteVec>(codes + r * strip_size, Full{c}))), n);
    ++seen.blocks, seen.lossy += total(n.saturated) + total(n.flushed) > 0;
  }
}

/// Codes of a strip with any values.
template <class Format, class Source, class Scale>
void encode_any(const Source& source, Rows<const typename Source::Type> x, int rows, const Scale scale,
                const Ahead<typename Source::Type> ahead, Rows<std::uint8_t> codes, Partial& seen) {
  ops::HealthCounts<Vec> n;
  for (int r = 0; r < rows; ++r) {
    ahead(r, rows);
    for (int c = 0; c < strip_size; c += width) {
      const Vec v = source.load(x[r], Full{c}), s = scale(r, c);
      const IntVec code = encode_lanes<Format>(Vec(v * s));
      ops::count_health<Format>(v, s, code, n);
      store_raw(codes[r], Full{c}, to_bytes(code));
    }
  }
  seen.saturated += total(n.saturated), seen.flushed += total(n.flushed), seen.nonfinite += total(n.nonfinite);
}

/// The same where no value is NaN or beyond the format's largest. `counts`: those that become 0 are counted. Beside codes, or without
/// them, the values of the codes times their descales, which are numbers of T; codes alone where T is one.
template <class Format, bool counts, class Source, class T, class Scale, class Descale>
void encode_in_range(const Source& source, Rows<const typename Source::Type> x, int rows, const Scale scale, const Descale descale,
                     const Ahead<typename Source::Type> ahead, Rows<T> to, Rows<std::uint8_t> codes, Partial& seen) {
  constexpr bool values = !std::is_same_v<T, std::uint8_t>;
  constexpr PairOrder order = order_of<Source, T>;
  IntVec minus{};
  for (int r = 0; r < rows; ++r) {
    ahead(r, rows);
    for (int c = 0; c < strip_size; c += pair_width) {
      const Pair v = source.template pair<order>(x[r] + c);
      const EncodedPair<Format> y(v, scale.template pair<order>(r, c));
      if constexpr (values) store_pair<order>(to[r] + c, y.values(descale.template pair<order>(r, c)));
      if (!values || codes.at != nullptr) y.template store_codes_at<order>(codes[r] + c);
      if constexpr (counts) y.count(v, minus);
    }
  }
  seen.flushed -= total(minus);
}

/// The same from any codes of a strip, as decode_operand decodes them.
template <class Format, class T, class Descale>
void decode_strip(const std::uint8_t* codes, const Strip& s, const Descale descale, Rows<T> to) {
  for (int r = 0; r < s.rows; ++r)
    Lane{}.each(s.cols, [&](auto c) {
      const Vec v = decode_lanes<Format, Vec>(widen(load_raw<ByteVec>(codes + r * strip_size, c)));
      Lane{}.store(to[r], c, v * descale(r, int(c.at)));
    });
}

/// Adds x^2 and (x - dequantized)^2 of a strip's finite values.
template <class Format, class Source, class Scale>
void measure_strip(const Source& source, const typename Source::Type* x, std::int64_t ld, int rows, const Scale& descale,
                   const std::uint8_t* codes, Partial& seen) {
  typedef double Wide __attribute__((vector_size(8 * width)));
  for (int r = 0; r < rows; ++r) {
    Wide signal{}, noise{};
    for (int c = 0; c < strip_size; c += width) {
      const Vec v = source.load(x + r * ld, Full{c});
      const Vec d = decode_lanes<Format, Vec>(widen(load_raw<ByteVec>(codes + r * strip_size, Full{c}))) * descale(r, c);
      const IntVec finite = (int_of(v) & 0x7FFFFFFF) < 0x7F800000;
      const Wide a = __builtin_convertvector(value_of<Vec>(IntVec(int_of(v) & finite)), Wide);
      const Wide b = __builtin_convertvector(value_of<Vec>(IntVec(int_of(d) & finite)), Wide);
      signal += a * a, noise += (a - b) * (a - b);
    }
    for (int i = 0; i < width; ++i) seen.signal += signal[i], seen.noise += noise[i];
  }
}

}  // namespace octet::cpu::OCTET_ISA
