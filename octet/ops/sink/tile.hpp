#pragma once

// Only for *.cpu.cpp files: how a CPU producer fills a Sink. Rows are made in tiles of 128; a tile is encoded while it is in cache.

#include <cstdlib>

#include "octet/ops/sink/sink.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

inline constexpr std::int64_t tile_rows = 128;

/// Encodes a matrix tile by tile into sink.codes. tile() may be called from several threads, once for every tile; finish() once after
/// them. Codes, descales, amax and counts do not depend on which thread took which tile. Defined in ops/quantize/quantize.cpu.cpp.
class TileQuantizer {
 public:
  /// `values` is where the whole matrix [rows, cols] stands, or null when tiles come from a buffer that is reused; it must be set
  /// unless the spec is local. `stored` is the type of the values: sink.dtype, or f32 to be rounded to it.
  TileQuantizer(const ops::Sink& sink, const void* values, DType stored);
  ~TileQuantizer();
  TileQuantizer(const TileQuantizer&) = delete;
  TileQuantizer& operator=(const TileQuantizer&) = delete;
  /// Rows [row0, row0 + rows) stand at `tile`, densely. row0 is a multiple of 128; rows <= 128, fewer only in the last tile.
  void tile(const void* tile, std::int64_t row0, std::int64_t rows);
  /// Turns maxima into scales, encodes what had to wait for them, and writes descales, amax and health.
  void finish();

  struct alignas(64) Partial {  // one a thread, merged in order
    float amax = 0, scale_min = 0, scale_max = 0;
    std::int64_t saturated = 0, flushed = 0, nonfinite = 0;
    double signal = 0, noise = 0;
  };

 private:
  void report();

  const ops::Sink& sink_;
  const void* values_;
  DType stored_;
  int threads_;
  Partial* partials_;
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
  const std::int64_t tiles = ceil_div(rows, tile_rows);
  for_each(tiles, work * tile_rows, [&](std::int64_t t) {
    const std::int64_t row0 = t * tile_rows, n = rows - row0 < tile_rows ? rows - row0 : tile_rows;
    T* const buffer = plain ? plain + row0 * cols : static_cast<T*>(std::malloc(std::size_t(n * cols) * sizeof(T)));
    for (std::int64_t r = 0; r < n; ++r) row(row0 + r, buffer + r * cols);
    quantizer.tile(buffer, row0, n);
    if (!plain) std::free(buffer);
  });
  quantizer.finish();
}

}  // namespace octet::cpu::OCTET_ISA
