#pragma once

// Only for *.cpu.cpp files: how a CPU producer fills a Sink. Rows are made in tiles of at most 128; a tile is encoded while it is in cache.

#include <cstdlib>

#include "octet/ops/quantize/sink.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

/// Encodes a matrix tile by tile into sink.codes. tile() may be called from several threads, once for every tile, or else all_tiles() from
/// one; finish() once after them. Codes, descales, amax and counts do not depend on which thread took which tile. Defined in
/// ops/quantize/quantize.cpu.cpp.
class TileQuantizer {
 public:
  /// `values` is the address of the whole matrix [rows, cols], or null when tiles come from a buffer that is reused; it must be set
  /// unless the spec is local. `stored` is the type of the values: sink.dtype, f32 to be rounded to it, or f16, times `factor`.
  TileQuantizer(const ops::Sink& sink, const void* values, DType stored, float factor = 1);
  ~TileQuantizer();
  TileQuantizer(const TileQuantizer&) = delete;
  TileQuantizer& operator=(const TileQuantizer&) = delete;
  /// Rows of a tile: at most 128, fewer where threads would have nothing to do, always a multiple of the blocks of transposed columns.
  std::int64_t tile_rows() const { return tile_rows_; }
  /// Even so there are too few tiles, and it is worth making all rows first and then calling all_tiles().
  bool wants_all_tiles() const { return strips_apart_ && ceil_div(sink_.shape[0], tile_rows_) < threads_; }
  /// Rows [row0, row0 + rows) are at `tile`, densely. row0 is a multiple of tile_rows(); fewer rows than that only in the last tile.
  void tile(const void* tile, std::int64_t row0, std::int64_t rows);
  /// Every tile of the matrix at `values`, by all threads: strips of a tile's columns may go to several.
  void all_tiles(const void* values);
  /// Turns maxima into scales, encodes the values that depend on them, and writes descales, amax and health.
  void finish();

  struct alignas(64) Partial {  // one per thread, merged in order
    float amax = 0, scale_min = 0, scale_max = 0;
    std::int64_t saturated = 0, flushed = 0, nonfinite = 0;
    double signal = 0, noise = 0;
    ops::BlockHealth blocks{};
    bool finite = true, finite_columns = true;  // of the values in the tensor's maximum and column_maxima
    float* column_maxima = nullptr;
  };

 private:
  /// f(worker, values, first row, rows, columns) for every tile of `rows`, or, where there are few and they are `apart`, every strip.
  template <class Format, class Source, class F>
  void parts(const Source& source, const void* values, std::int64_t rows, bool apart, const F& f);
  void encode_tensor();
  void encode_columns();
  void report();

  const ops::Sink& sink_;
  const void* values_;
  DType stored_;
  float factor_;
  int threads_;
  std::int64_t tile_rows_;
  bool strips_apart_;  // strips of a tile's columns can be encoded one without the others
  Partial* partials_;
  float* columns_ = nullptr;  // whole columns that wait: scales, descales, then maxima of each thread; rows of columns_width_
  std::int64_t columns_width_ = 0;
};

/// Calls row(r, out) for every row of the sink's matrix, where `out` takes the row's values as T (sink.dtype), and quantizes each tile
/// of rows as soon as it is complete. `work` is about the bytes that one row costs.
template <class T, class Row>
void fill_sink(const ops::Sink& sink, std::int64_t work, const Row& row) {
  const std::int64_t rows = sink.shape[0], cols = sink.shape[1];
  T* const plain = sink.plain.as<T>();
  if (!sink.spec.quantizes()) {
    for_each(rows, work, [&](std::int64_t r) { row(r, plain + r * cols); });
    return;
  }
  TileQuantizer quantizer(sink, plain, sink.dtype);
  const auto place_of = [&](std::int64_t row0, std::int64_t n) {
    return plain ? plain + row0 * cols : static_cast<T*>(std::malloc(std::size_t(n * cols) * sizeof(T)));
  };
  if (quantizer.wants_all_tiles()) {
    T* const values = place_of(0, rows);
    for_each(rows, work, [&](std::int64_t r) { row(r, values + r * cols); });
    quantizer.all_tiles(values);
    if (!plain) std::free(values);
    return quantizer.finish();
  }
  const std::int64_t tile_rows = quantizer.tile_rows();
  for_each(ceil_div(rows, tile_rows), work * tile_rows, [&](std::int64_t t) {
    const std::int64_t row0 = t * tile_rows, n = rows - row0 < tile_rows ? rows - row0 : tile_rows;
    T* const buffer = place_of(row0, n);
    for (std::int64_t r = 0; r < n; ++r) row(row0 + r, buffer + r * cols);
    quantizer.tile(buffer, row0, n);
    if (!plain) std::free(buffer);
  });
  quantizer.finish();
}

}  // namespace octet::cpu::OCTET_ISA
