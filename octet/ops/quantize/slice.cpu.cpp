#include "octet/ops/quantize/slice.kernels.hpp"
#include "octet/ops/quantize/cpu/report.hpp"
#include "octet/ops/quantize/cpu/worker.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

/// Whole rows of the matrix that a slice has, or a part of one.
struct Piece {
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
  std::int64_t at = 0;  // its first value in the slice
};
struct Pieces {
  Piece all[3];
  int count = 0;

  explicit Pieces(const ops::MatrixSlice& s) {
    const std::int64_t n = s.values.count(), C = s.cols;
    std::int64_t at = 0;
    const auto add = [&](std::int64_t rows, std::int64_t cols) {
      if (rows * cols == 0) return;
      all[count++] = {(s.first + at) / C, (s.first + at) % C, rows, cols, at};
      at += rows * cols;
    };
    if (const std::int64_t col = s.first % C; col != 0) add(1, C - col < n ? C - col : n);
    add((n - at) / C, C);
    add(1, n - at);
  }
};

/// The values of a piece in an area of the matrix: up to 128x128, of one block.
struct Area {
  Strip strip;            // rows and columns of the piece
  std::int64_t row, col;  // of its first value in the matrix
};

/// The areas of a piece, numbered.
struct Areas {
  const Piece& piece;
  std::int64_t high;                       // rows of the matrix between limits of areas: blocks have whole areas
  std::int64_t row0, col0, across, count;  // the first area; areas beside each other, and of all

  Areas(const Piece& p, ScaleBlock block)
      : piece(p),
        high(high_of(block)),
        row0(p.row / high),
        col0(p.col / strip_size),
        across((p.col + p.cols - 1) / strip_size - col0 + 1),
        count(((p.row + p.rows - 1) / high - row0 + 1) * across) {}

  static std::int64_t high_of(ScaleBlock block) {
    std::int64_t high = strip_size;
    while (block.rows % high != 0) high /= 2;
    return high;
  }

  Area operator[](std::int64_t i) const {
    const auto range = [](std::int64_t at, std::int64_t size, std::int64_t begin, std::int64_t n, std::int64_t& first, int& length) {
      const std::int64_t from = larger(at * size, begin), to = smaller((at + 1) * size, begin + n);
      first = from, length = int(to - from);
    };
    Area area{};
    range(row0 + i / across, high, piece.row, piece.rows, area.row, area.strip.rows);
    range(col0 + i % across, strip_size, piece.col, piece.cols, area.col, area.strip.cols);
    area.strip.row0 = area.row - piece.row, area.strip.col0 = area.col - piece.col;
    return area;
  }
};

float& entry(const ops::BlockTable& t, const Area& p) {
  const std::int64_t i = t.block.rows ? p.row / t.block.rows : 0, j = t.block.cols ? p.col / t.block.cols : 0;
  return t.at.f32()[i * t.stride.row_block + j * t.stride.col_block];
}

/// A piece as a matrix of its own, whose rows become codes.
ops::Sink sink_of(const Piece& p, const ops::QuantizeSpec& spec, DType dtype, std::uint8_t* codes) {
  const Shape shape{p.rows, p.cols};
  ops::Sink sink{.shape = shape, .dtype = dtype, .spec = spec};
  sink.codes.rows = {.codes = {codes + p.at, shape, spec.format}, .block = spec.rows};
  return sink;
}

float factor_of(const ops::MatrixSlice& s) { return s.factor ? *s.factor.f32() : 1.0f; }
DType read_as(const ops::MatrixSlice& s) { return s.values.dtype == DType::bf16 ? DType::bf16 : DType::f32; }

/// f(worker, values, their row length, strip, number of the area) for every area of a piece, by all threads.
template <class F>
void each_area(const ops::MatrixSlice& s, const Piece& piece, const ops::QuantizeSpec& spec, std::uint8_t* codes, Partial* partials,
               const F& f) {
  const ops::Sink sink = sink_of(piece, spec, read_as(s), codes);
  const Areas areas(piece, spec.rows);
  with_types(sink, s.values.dtype, factor_of(s), [&]<class Format>(const auto source) {
    using Source = std::remove_const_t<decltype(source)>;
    const auto* const x = s.values.as<typename Source::Type>() + piece.at;
    for_each(areas.count, strip_size * strip_size * std::int64_t(size_of(s.values.dtype)), [&](std::int64_t i) {
      Worker<Source, Format> worker{sink, partials[this_thread()], source};
      const Strip at = areas[i].strip;
      worker.strip(x + at.row0 * piece.cols + at.col0, at,
                   [&](const auto* values, std::int64_t ld, const Strip& strip) { f(worker, values, ld, strip, i); });
    });
  });
}

/// One per thread.
class Partials {
 public:
  Partials() : count_(threads()), all_(static_cast<Partial*>(std::aligned_alloc(alignof(Partial), sizeof(Partial) * std::size_t(count_)))) {
    for (int i = 0; i < count_; ++i) all_[i] = Partial{};
  }
  ~Partials() { std::free(all_); }
  Partials(const Partials&) = delete;
  Partials& operator=(const Partials&) = delete;
  Partial* all() { return all_; }
  Partial merged() const {
    Partial sum;
    for (int i = 0; i < count_; ++i) merge(sum, all_[i]);
    return sum;
  }

 private:
  int count_;
  Partial* all_;
};

// Areas of one piece may share an entry, as all do that of a tensor: each has a place of its own first.
class Tops {
 public:
  explicit Tops(const Areas& areas) : areas_(areas), all_(static_cast<float*>(std::malloc(sizeof(float) * std::size_t(areas.count)))) {}
  ~Tops() { std::free(all_); }
  Tops(const Tops&) = delete;
  Tops& operator=(const Tops&) = delete;
  float& operator[](std::int64_t i) { return all_[i]; }
  void raise(const ops::BlockTable& maxima) const {
    for (std::int64_t i = 0; maxima.at && i < areas_.count; ++i) {
      float& top = entry(maxima, areas_[i]);
      top = larger(all_[i], top);
    }
  }

 private:
  const Areas& areas_;
  float* all_;
};

}  // namespace

void slice_maxima(const ops::MatrixSlice& s, const ops::BlockTable& maxima) {
  Partials partials;
  ops::QuantizeSpec spec;
  spec.format = DType::e4m3, spec.rows = maxima.block;  // no codes are made
  const Pieces pieces(s);
  for (int k = 0; k < pieces.count; ++k) {
    const Areas areas(pieces.all[k], maxima.block);
    Tops tops(areas);
    each_area(s, areas.piece, spec, nullptr, partials.all(), [&](auto& worker, const auto* x, std::int64_t ld, const Strip& strip, auto i) {
      bool finite = true;
      tops[i] = worker.maximum_of(x, ld, strip, finite);
    });
    tops.raise(maxima);
  }
}

void quantize_slice(const ops::MatrixSlice& s, const ops::QuantizeSpec& spec, const ops::SliceTables& tables, const Tensor& codes) {
  Partials partials;
  const Pieces pieces(s);
  for (int k = 0; k < pieces.count; ++k) {
    const Areas areas(pieces.all[k], spec.rows);
    Tops tops(areas);
    each_area(s, areas.piece, spec, codes.u8(), partials.all(),
              [&](auto& worker, const auto* x, std::int64_t ld, const Strip& strip, auto i) {
                const float scale = entry(tables.scales, areas[i]),
                            descale = spec.scale_known() ? entry(tables.descales, areas[i]) : 1.0f / scale;
                worker.seen.amax = 0;
                worker.constant(x, ld, strip, scale, descale, Into::rows);
                tops[i] = worker.seen.amax;
                worker.seen.scale_min = worker.seen.scale_max == 0 ? scale : smaller(scale, worker.seen.scale_min);
                worker.seen.scale_max = larger(scale, worker.seen.scale_max);
              });
    tops.raise(tables.maxima);
  }
  ops::QuantizeSpec measured = spec;
  measured.amax = {};  // raised
  report(measured, partials.merged(), s.values.count());
}

}  // namespace octet::cpu::OCTET_ISA
