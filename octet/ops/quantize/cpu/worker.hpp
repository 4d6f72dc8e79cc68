#pragma once

// Only for quantize.cpu.cpp and slice.cpu.cpp: the work of one thread on a tile of rows.

#include <type_traits>

#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/quantize/cpu/strip.hpp"

namespace octet::cpu::OCTET_ISA {

/// When an orientation's codes can be made: with the tile, or after the last one.
enum class When { never, tile, finish };

inline When when(const ops::QuantizeSpec& spec, const Quantized& q, bool rows) {
  if (!q) return When::never;
  if (spec.scale_known()) return When::tile;
  return q.block.whole_tensor() || (!rows && q.block.whole_rows()) ? When::finish : When::tile;
}

inline int shift_of(int n) { return 31 - __builtin_clz(unsigned(n)); }

/// Calls f.operator()<Format>(source) for the format of the codes and the type of the values; `factor` is that of FP16.
template <class F>
void with_types(const ops::Sink& sink, DType stored, float factor, const F& f) {
  dispatch<E4M3, E5M2>(sink.spec.format, "quantize", [&]<class Format>() {
    if (stored == DType::bf16) f.template operator()<Format>(Bf16s{});
    else if (stored == DType::f16) f.template operator()<Format>(ScaledHalves{factor});
    else if (sink.dtype == DType::bf16) f.template operator()<Format>(RoundedFloats{});
    else f.template operator()<Format>(Floats{});
  });
}

template <class Format>
BlockRule rule_of(const ops::Sink& sink, const Quantized& q) {
  constexpr float most_f32 = 0x1.fffffep127f, most_bf16 = 0x1.fep127f;
  return {.rule = sink.spec.rule,
          .format_max = Format::max,
          .overflow = q.block.whole_tensor() || sink.dtype == DType::f32 ? most_f32 : most_bf16};
}

/// The orientations that a strip's codes are for.
enum class Into { rows, cols, both };
/// Of two orientations, at least one of which is wanted.
inline Into into(bool to_rows, bool to_cols) { return to_rows && to_cols ? Into::both : to_rows ? Into::rows : Into::cols; }

/// Whether all scaled values of a strip are numbers within the format, so that the short encoder serves.
enum class Range { inside, unknown };
inline Range range(bool finite, bool beyond) { return finite && !beyond ? Range::inside : Range::unknown; }

/// Scales of a strip and their reciprocals.
template <class Scale>
struct Scaling {
  Scale scale, descale;
};

/// Columns of whole strips: [begin, end).
struct Columns {
  std::int64_t begin, end;
};

/// The orientations of a sink's codes.
enum class Side { rows, cols };

/// One thread's work on a tile of rows, or on some strips of it.
template <class Source, class Format>
struct Worker {
  using T = typename Source::Type;

  const ops::Sink& sink;
  Partial& seen;
  const Source source;
  const Quantized &rows = sink.codes.rows, &cols = sink.codes.cols;
  const std::int64_t R = sink.shape[0], C = sink.shape[1];
  const bool health = sink.spec.health != nullptr, noise = health && sink.spec.measure_noise;
  alignas(64) std::uint8_t codes[strip_size * strip_size];
  union {
    alignas(64) std::uint8_t turned_codes[strip_size * strip_size];
    alignas(64) Bf16 untransposed[strip_size * strip_size];
  };
  alignas(64) T ragged[strip_size * strip_size];
  BlockScales scales{};

  /// f(values, their row length, strip) for a strip of rows at x. A narrow one is first copied and padded with zeros.
  template <class F>
  void strip(const T* x, const Strip& s, const F& f) {
    if (s.cols == strip_size) return f(x, C, s);
    for (int r = 0; r < s.rows; ++r) {
      __builtin_memset(ragged + r * strip_size, 0, strip_size * sizeof(T));
      __builtin_memcpy(ragged + r * strip_size, x + r * C, std::size_t(s.cols) * sizeof(T));
    }
    f(ragged, strip_size, s);
  }
  template <class F>
  void strips(const T* x, std::int64_t row0, int n, Columns in, const F& f) {
    for (std::int64_t c = in.begin; c < in.end; c += strip_size)
      strip(x + c, Strip{row0, c, n, int(C - c < strip_size ? C - c : strip_size)}, f);
  }

  const Quantized& of(Side side) const { return side == Side::rows ? rows : cols; }
  /// Columns that are to be K-contiguous: a strip's codes are transposed.
  bool turned(Side side) const { return side == Side::cols && !cols.transposed; }
  Place place_of(Side side, const Strip& s) const {
    const Tensor& to = of(side).codes;
    const bool turns = turned(side);
    const std::int64_t size = std::int64_t(size_of(to.dtype)), length = turns ? R : C,
                       at = turns ? s.col0 * R + s.row0 : s.row0 * C + s.col0;
    return {to.as<std::byte>() + at * size, length * size, turns ? s.cols : s.rows, int(ceil_div((turns ? s.rows : s.cols) * size, 64))};
  }
  static AlongRows unscaled() {
    static constexpr float one = 1;
    return {&one, 0, whole};
  }
  /// f.operator()<type of an orientation's values>(descale), or (1) where the descale stays a factor of the whole tensor.
  template <class Descale, class F>
  void with_values_of(const Quantized& q, const Descale& descale, const F& f) const {
    dispatch<float, Bf16>(q.codes.dtype, "quantize", [&]<class V>() {
      if constexpr (std::is_same_v<Descale, AlongRows>)
        if (!sink.spec.decodes_with_descale(q.block)) return f.template operator()<V>(unscaled());
      f.template operator()<V>(descale);
    });
  }
  /// Stores a strip from any codes.
  template <class Descale>
  void put(Side side, const Place& p, const Strip& s, const Descale& descale) {
    const Quantized& q = of(side);
    const bool turns = turned(side);
    if (q.decoded) {
      if (turns) transpose(codes, strip_size, s.rows, s.cols, turned_codes, strip_size);
      with_values_of(q, descale, [&]<class V>(const auto& factor) {
        if (turns) decode_strip<Format>(turned_codes, Strip{s.col0, s.row0, s.cols, s.rows}, Turned(factor), p.as<V>());
        else decode_strip<Format>(codes, s, factor, p.as<V>());
      });
    } else if (turns) {
      transpose(codes, strip_size, s.rows, s.cols, reinterpret_cast<std::uint8_t*>(p.at), p.stride);
    } else {
      for (int r = 0; r < s.rows; ++r) __builtin_memcpy(p.at + r * p.stride, codes + r * strip_size, std::size_t(s.cols));
    }
  }

  /// Whether an orientation can have its values without a look at their codes. Floats are four times the bytes to transpose.
  bool is_direct(Side side) const { return of(side).decoded && (!turned(side) || of(side).codes.dtype == DType::bf16); }
  /// Whether an orientation takes codes as a strip has them.
  bool is_straight(Side side) const { return !of(side).decoded && !turned(side); }
  /// Whether a strip's columns are its rows transposed.
  bool turns_rows(const Strip& s) const {
    return is_direct(Side::rows) && is_direct(Side::cols) && turned(Side::cols) && rows.codes.dtype == DType::bf16 &&
           s.rows % transpose_rows<Bf16> == 0 && sink.spec.decodes_with_descale(rows.block) == sink.spec.decodes_with_descale(cols.block);
  }
  template <class V, class Scale, class Descale>
  void encode(Rows<const T> x, const Strip& s, const Scale& scale, const Descale& descale, const Ahead<T>& ahead, Rows<V> to,
              Rows<std::uint8_t> also_codes, bool counts, Partial& counted) const {
    if (counts) encode_in_range<Format, true>(source, x, s.rows, scale, descale, ahead, to, also_codes, counted);
    else encode_in_range<Format, false>(source, x, s.rows, scale, descale, ahead, to, also_codes, counted);
  }
  /// Puts a whole strip of values in range where a direct orientation wants it, and, transposed, where `turned_too` says; with codes
  /// when others wait for them.
  template <class Scale>
  void put_direct(Rows<const T> x, const Strip& s, const Scale& scale, const Scale& descale, const Ahead<T>& ahead, Side side,
                  const Place& turned_too, Rows<std::uint8_t> also_codes, bool counts, Partial& counted) {
    with_values_of(of(side), descale, [&]<class V>(const auto& factor) {
      const Rows<V> to = turned(side) ? Rows<V>{reinterpret_cast<V*>(untransposed), strip_size}
                                      : (side == Side::rows ? ahead.rows : ahead.cols).template as<V>();
      encode(x, s, scale, factor, ahead, to, also_codes, counts, counted);
      if constexpr (std::is_same_v<V, Bf16>)
        if (const Rows<V> columns = turned_too.as<V>(); columns.at != nullptr)
          transpose(to.at, to.stride, s.rows, s.cols, columns.at, columns.stride);
    });
  }

  /// The way of a strip's codes: which orientations they are for, and what each still needs after encoding.
  struct Route {
    bool rows, cols;            // orientations that the strip fills
    bool counts;                // its measurements go to `seen`: the rows' strip, or the only one
    bool of_rows;               // the rows get their values without a look at codes
    bool direct;                // one orientation does
    bool turns;                 // the columns are those values, transposed
    bool straight;              // codes go to their place at once
    bool rows_wait, cols_wait;  // for codes, to put() them
  };
  Route route_of(const Strip& s, Range range, Into into) const {
    const bool whole_strip = s.cols == strip_size;
    Route r{.rows = into != Into::cols, .cols = into != Into::rows};
    r.counts = health && (r.rows || !rows);
    r.cols &= !r.rows || !sink.codes.one_matrix();
    r.of_rows = r.rows && is_direct(Side::rows);
    r.direct = range == Range::inside && whole_strip && (r.of_rows || (r.cols && is_direct(Side::cols)));
    r.turns = r.of_rows ? r.cols && turns_rows(s) : turned(Side::cols);
    r.rows_wait = r.rows && !(r.direct && r.of_rows), r.cols_wait = r.cols && !(r.direct && (!r.of_rows || r.turns));
    // Codes that nothing else waits for go straight to their place.
    r.straight = r.rows_wait != r.cols_wait && is_straight(r.rows_wait ? Side::rows : Side::cols) && whole_strip && !(r.counts && noise);
    return r;
  }

  /// Encodes a strip and puts its codes where they belong.
  template <class Scale>
  void emit(Rows<const T> x, const Strip& s, const Scaling<Scale>& by, Range range, Into into) {
    const Route route = route_of(s, range, into);
    const bool flushed = route.counts && sink.spec.count, compares = route.counts && noise;
    Partial uncounted;
    Partial& counted = route.counts ? seen : uncounted;
    const Ahead<T> ahead{x.at, C, route.rows ? place_of(Side::rows, s) : Place{}, route.cols ? place_of(Side::cols, s) : Place{}};
    const Rows<std::uint8_t> to =
        route.straight ? (route.rows_wait ? ahead.rows : ahead.cols).template as<std::uint8_t>() : Rows<std::uint8_t>{codes, strip_size};
    if (route.direct)
      put_direct(x, s, by.scale, by.descale, ahead, route.of_rows ? Side::rows : Side::cols, route.turns ? ahead.cols : Place{},
                 compares || route.rows_wait || route.cols_wait ? to : Rows<std::uint8_t>{}, flushed, counted);
    else if (range == Range::unknown) encode_any<Format>(source, x, s.rows, by.scale, ahead, to, counted);
    else encode(x, s, by.scale, by.scale, ahead, Rows<std::uint8_t>{}, to, flushed, counted);
    if (compares) measure_strip<Format>(source, x.at, x.stride, s.rows, by.descale, codes, seen);
    if (route.straight) return;
    if (route.rows_wait) put(Side::rows, ahead.rows, s, by.descale);
    if (route.cols_wait) put(Side::cols, ahead.cols, s, by.descale);
  }

  /// max |x| of a strip's numbers; clears `finite` when it has others.
  float maximum_of(const T* x, std::int64_t ld, const Strip& s, bool& finite) {
    const float bound = strip_maximum(source, x, ld, s.rows);
    if (is_finite(bound)) return bound;
    finite = false;
    float most = 0;
    for (int r = 0; r < s.rows; ++r) most = larger(maximum_of_numbers(source, x + r * ld, strip_size), most);
    return most;
  }

  /// All values with one scale.
  void constant(const T* x, std::int64_t ld, const Strip& s, float scale, float descale, Into into) {
    bool finite = true;
    const float amax = maximum_of(x, ld, s, finite);
    seen.amax = larger(amax, seen.amax);
    emit<AlongRows>({x, ld}, s, {{&scale, 0, whole}, {&descale, 0, whole}}, range(finite, !fits<Format>(amax, scale)), into);
  }

  /// One scale for a 128 x 128 block, which is a strip.
  void square(const T* x, std::int64_t ld, const Strip& s, Into into) {
    const bool to_rows = into != Into::cols, to_cols = into != Into::rows;
    bool finite = true;
    scales.amax[0] = maximum_of(x, ld, s, finite);
    const bool beyond = scales.derive(rule_of<Format>(sink, to_rows ? rows : cols), 0, 1, to_rows || !rows, seen);
    if (to_rows) put_descales(rows, s.row0 / strip_size, 1, s.col0 / strip_size, 1, scales, 0, 0);
    if (to_cols) put_descales(cols, s.col0 / strip_size, 1, s.row0 / strip_size, 1, scales, 0, 0);
    emit<AlongRows>({x, ld}, s, {{scales.scale, 0, whole}, {scales.descale, 0, whole}}, range(finite, beyond), into);
    if (noise && to_rows) compare(x, ld, s, s.rows, shift_of(strip_size), 1);
  }

  void row_vectors(const T* x, std::int64_t ld, const Strip& s) {
    const int n = rows.block.cols, shift = shift_of(n), segments = (s.cols + n - 1) >> shift, blocks = s.rows * segments;
    row_maxima(source, x, ld, s.rows, shift, segments, scales.amax);
    const bool finite = all_finite(scales.amax, blocks);
    if (!finite)
      for (int i = 0; i < blocks; ++i) scales.amax[i] = maximum_of_numbers(source, x + i / segments * ld + i % segments * n, n);
    const bool beyond = scales.derive(rule_of<Format>(sink, rows), 0, blocks, true, seen);
    put_descales(rows, s.row0, s.rows, s.col0 / n, segments, scales, segments, 1);
    emit<AlongRows>({x, ld}, s, {{scales.scale, segments, shift}, {scales.descale, segments, shift}}, range(finite, beyond), Into::rows);
    if (noise) compare(x, ld, s, 1, shift, segments);
  }

  /// Measures blocks whose scales and codes are here, see compare_blocks().
  void compare(const T* x, std::int64_t ld, const Strip& s, int rows_of_block, int shift, int segments) {
    see_scales(scales.scale, scales.amax, s.rows / rows_of_block * segments, seen.blocks);
    compare_blocks<Format>(source, x, ld, s, rows_of_block, shift, segments, scales.scale, codes, seen.blocks);
  }

  /// amax[c] over n rows, raised from the stored values; false when there was infinity or NaN.
  bool raise_columns(const T* x, std::int64_t ld, int n, float* amax) {
    alignas(64) float bound[strip_size];
    __builtin_memcpy(bound, amax, sizeof bound);
    column_maxima(source, x, ld, n, bound);
    const bool finite = all_finite(bound, strip_size);
    if (finite) {
      __builtin_memcpy(amax, bound, sizeof bound);
    } else {
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < strip_size; c += width)
          store_raw(amax, Full{c}, larger(magnitude(source.load(x + r * ld, Full{c})), load_raw<Vec>(amax, Full{c})));
    }
    return finite;
  }

  void column_vectors(const T* x, std::int64_t ld, const Strip& s) {
    const int n = cols.block.cols, shift = shift_of(n), groups = (s.rows + n - 1) >> shift;
    bool finite = true, beyond = false;
    for (int g = 0; g < groups; ++g) {
      float* const amax = scales.amax + g * strip_size;
      for (int c = 0; c < strip_size; ++c) amax[c] = 0;
      finite &= raise_columns(x + g * n * ld, ld, s.rows - g * n < n ? s.rows - g * n : n, amax);
      beyond |= scales.derive(rule_of<Format>(sink, cols), g * strip_size, s.cols, !rows, seen);
    }
    put_descales(cols, s.col0, s.cols, s.row0 / n, groups, scales, 1, strip_size);
    emit<AlongColumns>({x, ld}, s, {{scales.scale, shift}, {scales.descale, shift}}, range(finite, beyond), Into::cols);
  }

  /// Rows with a scale each: maxima first, then codes.
  void whole_rows(const T* x, std::int64_t row0, int n) {
    bool finite = true;
    for (int r = 0; r < n; ++r) {
      scales.amax[r] = maximum(source, x + r * C, C);
      if (is_finite(scales.amax[r])) continue;
      finite = false;
      scales.amax[r] = maximum_of_numbers(source, x + r * C, C);
    }
    const bool beyond = scales.derive(rule_of<Format>(sink, rows), 0, n, true, seen);
    put_descales(rows, row0, n, 0, 1, scales, 1, 0);
    if (noise && C > 0) see_scales(scales.scale, nullptr, n, seen.blocks);
    strips(x, row0, n, {0, C}, [&](const T* p, std::int64_t ld, const Strip& s) {
      emit<AlongRows>({p, ld}, s, {{scales.scale, 1, whole}, {scales.descale, 1, whole}}, range(finite, beyond), Into::rows);
    });
  }

  /// All work on some columns of a tile.
  void tile(const T* x, std::int64_t row0, int n, Columns in) {
    const bool row_now = when(sink.spec, rows, true) == When::tile, col_now = when(sink.spec, cols, false) == When::tile;
    if (sink.spec.scale_known()) {
      const float scale = *sink.spec.scale.f32(), descale = *sink.spec.descale.f32();
      return strips(x, row0, n, in,
                    [&](const T* p, std::int64_t ld, const Strip& s) { constant(p, ld, s, scale, descale, into(row_now, col_now)); });
    }
    maxima(x, row0, n, in, !row_now && !col_now);
    if (row_now && rows.block.whole_rows()) whole_rows(x, row0, n);
    if (row_now || col_now)
      strips(x, row0, n, in, [&](const T* p, std::int64_t ld, const Strip& s) { blocks(p, ld, s, row_now, col_now); });
  }

  /// The maxima that scales depend on: of the tensor, if no block's maxima give it, and of whole columns.
  void maxima(const T* x, std::int64_t row0, int n, Columns in, bool nothing_now) {
    const bool of_tensor = nothing_now && ((rows && rows.block.whole_tensor()) || (cols && cols.block.whole_tensor()));
    const bool of_columns = when(sink.spec, cols, false) == When::finish && cols.block.whole_rows();
    if (!of_tensor && !of_columns) return;
    strips(x, row0, n, in, [&](const T* p, std::int64_t ld, const Strip& s) {
      if (of_tensor) seen.amax = larger(maximum_of(p, ld, s, seen.finite), seen.amax);
      if (of_columns) seen.finite_columns &= raise_columns(p, ld, s.rows, seen.column_maxima + s.col0);
    });
  }

  void blocks(const T* x, std::int64_t ld, const Strip& s, bool row_now, bool col_now) {
    const bool same = rows && cols && sink.spec.same_codes();
    if (row_now && rows.block.rows > 1) square(x, ld, s, into(true, same));
    else if (row_now && rows.block.cols > 0) row_vectors(x, ld, s);
    if (col_now && cols.block.rows > 1 && !same) square(x, ld, s, Into::cols);
    else if (col_now && cols.block.rows == 1) column_vectors(x, ld, s);
  }
};

}  // namespace octet::cpu::OCTET_ISA
