#include "octet/ops/quantize/cpu/report.hpp"
#include "octet/ops/quantize/cpu/worker.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

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

/// The scales of a strip of whole columns, from the maxima that each thread saw. True when some value can land beyond the format's largest.
template <class Format>
bool column_scales(const ops::Sink& sink, std::int64_t col0, Partial* partials, int threads, float* scale, float* descale) {
  const Quantized& cols = sink.codes.cols;
  const int n = int(sink.shape[1] - col0 < strip_size ? sink.shape[1] - col0 : strip_size);
  BlockScales s;
  for (int i = 0; i < threads; ++i)
    for (int c = 0; c < n; ++c) s.amax[c] = larger(partials[i].column_maxima[col0 + c], s.amax[c]);
  const bool beyond = s.derive(rule_of<Format>(sink, cols), 0, n, !sink.codes.rows, partials[0]);
  put_descales(cols, col0, n, 0, 1, s, 1, 0);
  __builtin_memcpy(scale, s.scale, sizeof(float) * std::size_t(n));
  __builtin_memcpy(descale, s.descale, sizeof(float) * std::size_t(n));
  return beyond;
}

/// Padding of a layout is 1 in f32 and the code 0 in e8m0: always the same bytes.
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

inline constexpr std::int64_t turned_rows = 32;  // at least, where a tile is transposed

/// Rows of a tile: 128, or fewer so that every thread has some, but whole blocks of the columns.
std::int64_t rows_of_tiles(const ops::Sink& sink, int threads) {
  const Quantized &rows = sink.codes.rows, &cols = sink.codes.cols;
  std::int64_t least = when(sink.spec, cols, false) == When::tile && !cols.transposed ? turned_rows : 8;
  if (cols && cols.block.rows == 1) least = larger(std::int64_t(cols.block.cols), least);
  if ((rows && rows.block.rows > 1) || (cols && cols.block.rows > 1)) least = strip_size;
  const std::int64_t R = sink.shape[0], each = ceil_div(R, strip_size * threads) * threads;
  const std::int64_t n = each == 0 ? least : round_up(ceil_div(R, each), least);
  return n < strip_size ? n : strip_size;
}

/// A row's scale comes from all of its strips.
bool strips_are_apart(const ops::Sink& sink) { return sink.spec.scale_known() || !sink.codes.rows || !sink.codes.rows.block.whole_rows(); }

bool columns_wait(const ops::Sink& sink) {
  return when(sink.spec, sink.codes.cols, false) == When::finish && sink.codes.cols.block.whole_rows();
}

}  // namespace

TileQuantizer::TileQuantizer(const ops::Sink& sink, const void* values, DType stored, float factor)
    : sink_(sink),
      values_(values),
      stored_(stored),
      factor_(factor),
      threads_(threads()),
      tile_rows_(rows_of_tiles(sink, threads_)),
      strips_apart_(strips_are_apart(sink)) {
  partials_ = static_cast<Partial*>(std::aligned_alloc(alignof(Partial), sizeof(Partial) * std::size_t(threads_)));
  for (int i = 0; i < threads_; ++i) partials_[i] = Partial{};
  if (!columns_wait(sink)) return;
  columns_width_ = round_up(sink.shape[1], strip_size);
  columns_ = static_cast<float*>(std::calloc(std::size_t((2 + threads_) * columns_width_), sizeof(float)));
  for (int i = 0; i < threads_; ++i) partials_[i].column_maxima = columns_ + (2 + i) * columns_width_;
}

TileQuantizer::~TileQuantizer() {
  std::free(columns_);
  std::free(partials_);
}

void TileQuantizer::tile(const void* tile, std::int64_t row0, std::int64_t rows) {
  with_types(sink_, stored_, factor_, [&]<class Format>(const auto source) {
    using Source = std::remove_const_t<decltype(source)>;
    Worker<Source, Format> worker{sink_, partials_[this_thread()], source};
    worker.tile(static_cast<const typename Source::Type*>(tile), row0, int(rows), {0, sink_.shape[1]});
  });
}

template <class Format, class Source, class F>
void TileQuantizer::parts(const Source& source, const void* values, std::int64_t rows, bool apart, const F& f) {
  constexpr std::int64_t enough = 4;  // tiles per thread: their number need not be a multiple of the threads
  const std::int64_t R = sink_.shape[0], C = sink_.shape[1], tiles = ceil_div(R, rows);
  const std::int64_t strips = apart && tiles < enough * threads_ ? ceil_div(C, strip_size) : 1, width = strips > 1 ? strip_size : C;
  const auto* const x = static_cast<const typename Source::Type*>(values);
  for_each(tiles * strips, rows * width * std::int64_t(size_of(stored_)), [&](std::int64_t job) {
    const std::int64_t row0 = job / strips * rows, col0 = job % strips * width;
    Worker<Source, Format> worker{sink_, partials_[this_thread()], source};
    f(worker, x + row0 * C, row0, int(R - row0 < rows ? R - row0 : rows), Columns{col0, C - col0 < width ? C : col0 + width});
  });
}

void TileQuantizer::all_tiles(const void* values) {
  with_types(sink_, stored_, factor_, [&]<class Format>(const auto source) {
    parts<Format>(source, values, tile_rows_, strips_apart_,
                  [](auto& worker, const auto* x, std::int64_t row0, int n, Columns in) { worker.tile(x, row0, n, in); });
  });
}

void TileQuantizer::finish() {
  const Quantized &rows = sink_.codes.rows, &cols = sink_.codes.cols;
  const auto waits_for_tensor = [&](const Quantized& q) {
    return when(sink_.spec, q, &q == &rows) == When::finish && q.block.whole_tensor();
  };
  if (waits_for_tensor(rows) || waits_for_tensor(cols)) encode_tensor();
  if (columns_wait(sink_)) encode_columns();
  if (!sink_.spec.scale_known()) fill_padding(rows), fill_padding(cols);
  report();
}

void TileQuantizer::encode_tensor() {
  const Quantized &rows = sink_.codes.rows, &cols = sink_.codes.cols;
  const bool of_rows = rows && rows.block.whole_tensor(), of_cols = cols && cols.block.whole_tensor();
  with_types(sink_, stored_, factor_, [&]<class Format>(const auto source) {
    Partial all;
    for (int i = 0; i < threads_; ++i) merge(all, partials_[i]);
    const BlockScales one = tensor_scale<Format>(sink_, all);
    partials_[0].scale_min = all.scale_min, partials_[0].scale_max = all.scale_max;
    const bool seen_all = when(sink_.spec, rows, true) != When::tile && when(sink_.spec, cols, false) != When::tile;
    const bool in_range = seen_all && all.finite && fits<Format>(all.amax, one.scale[0]);
    parts<Format>(source, values_, round_up(tile_rows_, turned_rows), true,
                  [&](auto& worker, const auto* values, std::int64_t row0, int n, Columns in) {
                    worker.strips(values, row0, n, in, [&](const auto* x, std::int64_t ld, const Strip& s) {
                      const Scaling<AlongRows> by{{one.scale, 0, whole}, {one.descale, 0, whole}};
                      if (in_range) worker.emit({x, ld}, s, by, Range::inside, into(of_rows, of_cols));
                      else worker.constant(x, ld, s, one.scale[0], one.descale[0], into(of_rows, of_cols));
                    });
                  });
  });
}

/// Scales of whole columns from the maxima that each thread saw, then their codes.
void TileQuantizer::encode_columns() {
  const std::int64_t C = sink_.shape[1];
  float *const scale = columns_, *const descale = columns_ + columns_width_;
  with_types(sink_, stored_, factor_, [&]<class Format>(const auto source) {
    bool finite = true, beyond = false;
    for (int i = 0; i < threads_; ++i) finite &= partials_[i].finite_columns;
    for (std::int64_t c = 0; c < C; c += strip_size) beyond |= column_scales<Format>(sink_, c, partials_, threads_, scale + c, descale + c);
    parts<Format>(source, values_, round_up(tile_rows_, turned_rows), true,
                  [&](auto& worker, const auto* values, std::int64_t row0, int n, Columns in) {
                    worker.strips(values, row0, n, in, [&](const auto* x, std::int64_t ld, const Strip& s) {
                      const Scaling<AlongColumns> by{{scale + s.col0, whole}, {descale + s.col0, whole}};
                      worker.emit({x, ld}, s, by, range(finite, beyond), Into::cols);
                    });
                  });
  });
}

void TileQuantizer::report() {
  Partial all;
  for (int i = 0; i < threads_; ++i) merge(all, partials_[i]);
  if (sink_.spec.scale_known()) all.scale_min = all.scale_max = *sink_.spec.scale.f32();
  OCTET_ISA::report(sink_.spec, all, sink_.shape.count());
}

void quantize(const Tensor& x, const ops::Sink& sink, const Tensor& descale) {
  TileQuantizer quantizer(sink, x.data, x.dtype, descale ? *descale.f32() : 1.0f);
  quantizer.all_tiles(x.data);
  quantizer.finish();
}

}  // namespace octet::cpu::OCTET_ISA
