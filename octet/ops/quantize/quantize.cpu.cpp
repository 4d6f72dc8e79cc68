#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/ops/quantize/strip.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

/// When an orientation's codes can be made: with the tile, or after the last one.
enum class When { never, tile, finish };

When when(const ops::QuantizeSpec& spec, const Quantized& q, bool rows) {
  if (!q) return When::never;
  if (spec.scale_known()) return When::tile;
  return q.block.whole_tensor() || (!rows && q.block.whole_rows()) ? When::finish : When::tile;
}

/// Both orientations have one scale for every value, so the codes of one are those of the other.
bool same_codes(const ops::Sink& sink) {
  const Quantized &r = sink.codes.rows, &c = sink.codes.cols;
  return r && c && r.block == c.block && r.block.rows == r.block.cols;
}

int shift_of(int n) { return 31 - __builtin_clz(unsigned(n)); }

/// Calls f.operator()<Source, Format>() for how the values stand and what they become.
template <class F>
void with_types(const ops::Sink& sink, DType stored, const F& f) {
  dispatch<E4M3, E5M2>(sink.spec.format, "quantize", [&]<class Format>() {
    if (stored == DType::bf16) f.template operator()<Bf16s, Format>();
    else if (sink.dtype == DType::bf16) f.template operator()<RoundedFloats, Format>();
    else f.template operator()<Floats, Format>();
  });
}

template <class Format>
ops::BlockRule rule_of(const ops::Sink& sink, const Quantized& q) {
  constexpr float most_f32 = 0x1.fffffep127f, most_bf16 = 0x1.fep127f;
  return {.rule = sink.spec.rule,
          .format_max = Format::max,
          .overflow = q.block.whole_tensor() || sink.dtype == DType::f32 ? most_f32 : most_bf16};
}

/// One thread's work on a tile of rows or a strip of columns.
template <class Source, class Format>
struct Worker {
  using T = typename Source::Type;

  const ops::Sink& sink;
  Partial& seen;
  const Quantized &rows = sink.codes.rows, &cols = sink.codes.cols;
  const std::int64_t R = sink.shape[0], C = sink.shape[1];
  const bool health = sink.spec.health != nullptr, noise = health && sink.spec.measure_noise;
  alignas(64) std::uint8_t codes[strip_size * strip_size];
  alignas(64) T ragged[strip_size * strip_size];
  BlockScales scales{};

  /// f(values, their row length, strip) for a strip of rows that stand at x. A narrow one is first copied to where zeros surround it.
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
  void strips(const T* x, std::int64_t row0, int n, const F& f) {
    for (std::int64_t c = 0; c < C; c += strip_size) strip(x + c, Strip{row0, c, n, int(C - c < strip_size ? C - c : strip_size)}, f);
  }

  /// Encodes a strip and puts its codes where they belong. The orientation that counts is the rows', or the only one.
  template <class Scale>
  void emit(const T* x, std::int64_t ld, const Strip& s, const Scale& scale, const Scale& descale, bool in_range, bool to_rows, bool to_cols) {
    const bool counts = health && (to_rows || !rows);
    Partial uncounted;
    Partial& counted = counts ? seen : uncounted;
    std::uint8_t* const row_codes = to_rows ? rows.codes.u8() + s.row0 * C + s.col0 : nullptr;
    std::uint8_t* const col_codes = to_cols ? cols.codes.u8() + s.col0 * R + s.row0 : nullptr;
    const Ahead<T> ahead{x, row_codes, col_codes, C, R};
    if (!in_range) encode_strip<Source, Format, Encoding::any>(x, ld, s.rows, scale, ahead, codes, counted);
    else if (counts && sink.spec.count) encode_strip<Source, Format, Encoding::in_range_counted>(x, ld, s.rows, scale, ahead, codes, seen);
    else encode_strip<Source, Format, Encoding::in_range>(x, ld, s.rows, scale, ahead, codes, uncounted);
    if (counts && noise) measure_strip<Source, Format>(x, ld, s.rows, descale, codes, seen);
    if (to_rows)
      for (int r = 0; r < s.rows; ++r) __builtin_memcpy(row_codes + r * C, codes + r * strip_size, std::size_t(s.cols));
    if (to_cols) transpose_bytes(codes, strip_size, s.rows, s.cols, col_codes, R);
  }

  /// max |x| of a strip's numbers; clears `finite` when it has others.
  float maximum_of(const T* x, std::int64_t ld, const Strip& s, bool& finite) {
    const float bound = strip_maximum<Source>(x, ld, s.rows);
    if (is_finite(bound)) return bound;
    finite = false;
    float most = 0;
    for (int r = 0; r < s.rows; ++r) most = larger(maximum_of_numbers<Source>(x + r * ld, strip_size), most);
    return most;
  }

  /// All values with one scale.
  void constant(const T* x, std::int64_t ld, const Strip& s, float scale, float descale, bool to_rows, bool to_cols) {
    bool finite = true;
    const float amax = maximum_of(x, ld, s, finite);
    seen.amax = larger(amax, seen.amax);
    emit(x, ld, s, AlongRows{&scale, 0, whole}, AlongRows{&descale, 0, whole}, finite && amax * scale <= Format::nearest_to_max, to_rows, to_cols);
  }

  /// One scale for a 128 x 128 block, which is a strip.
  void square(const T* x, std::int64_t ld, const Strip& s, bool to_rows, bool to_cols) {
    bool finite = true;
    scales.amax[0] = maximum_of(x, ld, s, finite);
    const bool beyond = scales.derive(rule_of<Format>(sink, to_rows ? rows : cols), 0, 1, to_rows || !rows, seen);
    if (to_rows) put_descales(rows, s.row0 / strip_size, 1, s.col0 / strip_size, 1, scales, 0, 0);
    if (to_cols) put_descales(cols, s.col0 / strip_size, 1, s.row0 / strip_size, 1, scales, 0, 0);
    emit(x, ld, s, AlongRows{scales.scale, 0, whole}, AlongRows{scales.descale, 0, whole}, finite && !beyond, to_rows, to_cols);
  }

  void row_vectors(const T* x, std::int64_t ld, const Strip& s) {
    const int n = rows.block.cols, shift = shift_of(n), segments = (s.cols + n - 1) >> shift, blocks = s.rows * segments;
    row_maxima<Source>(x, ld, s.rows, shift, segments, scales.amax);
    const bool finite = all_finite(scales.amax, blocks);
    if (!finite)
      for (int i = 0; i < blocks; ++i) scales.amax[i] = maximum_of_numbers<Source>(x + i / segments * ld + i % segments * n, n);
    const bool beyond = scales.derive(rule_of<Format>(sink, rows), 0, blocks, true, seen);
    put_descales(rows, s.row0, s.rows, s.col0 / n, segments, scales, segments, 1);
    emit(x, ld, s, AlongRows{scales.scale, segments, shift}, AlongRows{scales.descale, segments, shift}, finite && !beyond, true, false);
  }

  /// amax[c] over n rows, raised from what stands there; false when there was infinity or NaN.
  bool raise_columns(const T* x, std::int64_t ld, int n, float* amax) {
    alignas(64) float bound[strip_size];
    __builtin_memcpy(bound, amax, sizeof bound);
    column_maxima<Source>(x, ld, n, bound);
    const bool finite = all_finite(bound, strip_size);
    if (finite) {
      __builtin_memcpy(amax, bound, sizeof bound);
    } else {
      for (int r = 0; r < n; ++r)
        for (int c = 0; c < strip_size; c += width)
          store_raw(amax, Full{c}, larger(magnitude(Source::load(x + r * ld, Full{c})), load_raw<Vec>(amax, Full{c})));
    }
    return finite;
  }

  void column_vectors(const T* x, std::int64_t ld, const Strip& s) {
    const int n = cols.block.cols, shift = shift_of(n), groups = (s.rows + n - 1) >> shift;
    bool in_range = true;
    for (int g = 0; g < groups; ++g) {
      float* const amax = scales.amax + g * strip_size;
      for (int c = 0; c < strip_size; ++c) amax[c] = 0;
      in_range &= raise_columns(x + g * n * ld, ld, s.rows - g * n < n ? s.rows - g * n : n, amax);
      in_range &= !scales.derive(rule_of<Format>(sink, cols), g * strip_size, s.cols, !rows, seen);
    }
    put_descales(cols, s.col0, s.cols, s.row0 / n, groups, scales, 1, strip_size);
    emit(x, ld, s, AlongColumns{scales.scale, shift}, AlongColumns{scales.descale, shift}, in_range, false, true);
  }

  /// Rows with a scale each: maxima first, then codes.
  void whole_rows(const T* x, std::int64_t row0, int n) {
    bool finite = true;
    for (int r = 0; r < n; ++r) {
      scales.amax[r] = maximum<Source>(x + r * C, C);
      if (is_finite(scales.amax[r])) continue;
      finite = false;
      scales.amax[r] = maximum_of_numbers<Source>(x + r * C, C);
    }
    const bool in_range = !scales.derive(rule_of<Format>(sink, rows), 0, n, true, seen) && finite;
    put_descales(rows, row0, n, 0, 1, scales, 1, 0);
    strips(x, row0, n, [&](const T* p, std::int64_t ld, const Strip& s) {
      emit(p, ld, s, AlongRows{scales.scale, 1, whole}, AlongRows{scales.descale, 1, whole}, in_range, true, false);
    });
  }

  /// A strip of columns with a scale each, through all rows.
  void whole_columns(const T* values, std::int64_t col0) {
    const int width = int(C - col0 < strip_size ? C - col0 : strip_size);
    const auto chunks = [&](const auto& f) {
      for (std::int64_t r = 0; r < R; r += strip_size) strip(values + r * C + col0, Strip{r, col0, int(R - r < strip_size ? R - r : strip_size), width}, f);
    };
    for (int c = 0; c < strip_size; ++c) scales.amax[c] = 0;
    bool in_range = true;
    chunks([&](const T* x, std::int64_t ld, const Strip& s) { in_range &= raise_columns(x, ld, s.rows, scales.amax); });
    in_range &= !scales.derive(rule_of<Format>(sink, cols), 0, width, !rows, seen);
    put_descales(cols, col0, width, 0, 1, scales, 1, 0);
    chunks([&](const T* x, std::int64_t ld, const Strip& s) {
      emit(x, ld, s, AlongColumns{scales.scale, whole}, AlongColumns{scales.descale, whole}, in_range, false, true);
    });
  }

  /// All that can be done with a tile at once.
  void tile(const T* x, std::int64_t row0, int n) {
    const bool row_now = when(sink.spec, rows, true) == When::tile, col_now = when(sink.spec, cols, false) == When::tile, same = same_codes(sink);
    const bool waits_for_tensor = (rows && !row_now) || (cols && !col_now && cols.block.whole_tensor());
    if (waits_for_tensor && !row_now && !col_now) {
      bool finite = true;
      return strips(x, row0, n, [&](const T* p, std::int64_t ld, const Strip& s) { seen.amax = larger(maximum_of(p, ld, s, finite), seen.amax); });
    }
    if (sink.spec.scale_known()) {
      const float scale = *sink.spec.scale.f32(), descale = *sink.spec.descale.f32();
      return strips(x, row0, n, [&](const T* p, std::int64_t ld, const Strip& s) { constant(p, ld, s, scale, descale, row_now, col_now); });
    }
    if (row_now && rows.block.whole_rows()) whole_rows(x, row0, n);
    strips(x, row0, n, [&](const T* p, std::int64_t ld, const Strip& s) {
      if (row_now && rows.block.rows > 1) square(p, ld, s, true, same);
      else if (row_now && rows.block.cols > 0) row_vectors(p, ld, s);
      if (col_now && cols.block.rows > 1 && !same) square(p, ld, s, false, true);
      else if (col_now && cols.block.rows == 1) column_vectors(p, ld, s);
    });
  }
};

/// The one scale of a tensor, from its maximum, for the orientations that have it.
template <class Format>
BlockScales tensor_scale(const ops::Sink& sink, Partial& seen) {
  BlockScales s;
  const Quantized &rows = sink.codes.rows, &cols = sink.codes.cols;
  const bool of_rows = rows && rows.block.whole_tensor(), of_cols = cols && cols.block.whole_tensor();
  s.amax[0] = seen.amax;
  s.derive(rule_of<Format>(sink, of_rows ? rows : cols), 0, 1, of_rows || !rows, seen);
  if (of_rows) put_descales(rows, 0, 1, 0, 1, s, 0, 0);
  if (of_cols) put_descales(cols, 0, 1, 0, 1, s, 0, 0);
  return s;
}

void merge(Partial& into, const Partial& p) {
  into.amax = larger(p.amax, into.amax);
  if (p.scale_max > 0) {
    into.scale_min = into.scale_max == 0 ? p.scale_min : smaller(p.scale_min, into.scale_min);
    into.scale_max = larger(p.scale_max, into.scale_max);
  }
  into.saturated += p.saturated, into.flushed += p.flushed, into.nonfinite += p.nonfinite;
  into.signal += p.signal, into.noise += p.noise;
}

/// Padding of a layout is 1 in f32 and the code 0 in e8m0: always the same bytes, whatever stood there.
void fill_padding(const Quantized& q) {
  if (!q || q.descales.shape.rank != 2) return;
  const bool by_column = q.descales.dtype == DType::f32 && q.block.rows == 1;  // stored block of K by block of K
  const std::int64_t rows = by_column ? ceil_div(q.cols(), q.block.cols) : ceil_div(q.rows(), q.block.rows);
  const std::int64_t cols = by_column ? q.rows() : ceil_div(q.cols(), q.block.cols);
  const std::int64_t width = q.descales.shape[1];
  for (std::int64_t r = 0; r < q.descales.shape[0]; ++r)
    for (std::int64_t c = r < rows ? cols : 0; c < width; ++c) {
      if (q.descales.dtype == DType::e8m0) q.descales.u8()[r * width + c] = 0;
      else q.descales.f32()[r * width + c] = 1.0f;
    }
}

}  // namespace

TileQuantizer::TileQuantizer(const ops::Sink& sink, const void* values, DType stored) : sink_(sink), values_(values), stored_(stored), threads_(threads()) {
  partials_ = static_cast<Partial*>(std::aligned_alloc(alignof(Partial), sizeof(Partial) * std::size_t(threads_)));
  for (int i = 0; i < threads_; ++i) partials_[i] = Partial{};
}

TileQuantizer::~TileQuantizer() { std::free(partials_); }

void TileQuantizer::tile(const void* tile, std::int64_t row0, std::int64_t rows) {
  with_types(sink_, stored_, [&]<class Source, class Format>() {
    Worker<Source, Format> worker{sink_, partials_[this_thread()]};
    worker.tile(static_cast<const typename Source::Type*>(tile), row0, int(rows));
  });
}

void TileQuantizer::finish() {
  const std::int64_t R = sink_.shape[0], C = sink_.shape[1];
  const Quantized &rows = sink_.codes.rows, &cols = sink_.codes.cols;
  const bool row_waits = when(sink_.spec, rows, true) == When::finish, col_waits = when(sink_.spec, cols, false) == When::finish;
  const bool row_tensor = row_waits, col_tensor = col_waits && cols.block.whole_tensor();
  const std::int64_t value_bytes = C * std::int64_t(size_of(stored_));
  with_types(sink_, stored_, [&]<class Source, class Format>() {
    const auto* values = static_cast<const typename Source::Type*>(values_);
    if (row_tensor || col_tensor) {
      Partial all;
      for (int i = 0; i < threads_; ++i) merge(all, partials_[i]);
      const BlockScales one = tensor_scale<Format>(sink_, all);
      partials_[0].scale_min = all.scale_min, partials_[0].scale_max = all.scale_max;
      for_each(ceil_div(R, tile_rows), value_bytes * tile_rows, [&](std::int64_t t) {
        const std::int64_t row0 = t * tile_rows;
        Worker<Source, Format> worker{sink_, partials_[this_thread()]};
        worker.strips(values + row0 * C, row0, int(R - row0 < tile_rows ? R - row0 : tile_rows), [&](const auto* x, std::int64_t ld, const Strip& s) {
          worker.constant(x, ld, s, one.scale[0], one.descale[0], row_tensor, col_tensor);
        });
      });
    }
    if (col_waits && !col_tensor)
      for_each(ceil_div(C, strip_size), R * strip_size * std::int64_t(size_of(stored_)), [&](std::int64_t t) {
        Worker<Source, Format> worker{sink_, partials_[this_thread()]};
        worker.whole_columns(values, t * strip_size);
      });
  });
  if (!sink_.spec.scale_known()) fill_padding(rows), fill_padding(cols);
  report();
}

void TileQuantizer::report() {
  Partial all;
  for (int i = 0; i < threads_; ++i) merge(all, partials_[i]);
  if (sink_.spec.scale_known()) all.scale_min = all.scale_max = *sink_.spec.scale.f32();
  if (sink_.spec.amax) *sink_.spec.amax.f32() = larger(all.amax, *sink_.spec.amax.f32());
  if (ops::QuantizeHealth* const h = sink_.spec.health) {
    const bool first = h->scale_max == 0;
    h->scale_min = first ? all.scale_min : smaller(all.scale_min, h->scale_min);
    h->scale_max = larger(all.scale_max, h->scale_max);
    h->values += sink_.shape.count();
    if (sink_.spec.count) h->saturated += all.saturated, h->flushed += all.flushed;
    h->nonfinite += all.nonfinite;
    h->signal += all.signal, h->noise += all.noise;
  }
}

void quantize(const Tensor& x, const ops::Sink& sink) {
  const std::int64_t R = sink.shape[0], C = sink.shape[1], bytes = C * std::int64_t(size_of(x.dtype));
  TileQuantizer quantizer(sink, x.data, x.dtype);
  for_each(ceil_div(R, tile_rows), bytes * tile_rows, [&](std::int64_t t) {
    const std::int64_t row0 = t * tile_rows;
    quantizer.tile(x.as<std::byte>() + row0 * bytes, row0, R - row0 < tile_rows ? R - row0 : tile_rows);
  });
  quantizer.finish();
}

}  // namespace octet::cpu::OCTET_ISA
