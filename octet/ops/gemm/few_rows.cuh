#pragma once

// Only for *.cuda.cu files: products with few rows.

#include <bit>

#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/quantize/cuda/codes.cuh"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

// A product with few rows takes as long as reading b. A warp reads a few neighbouring rows of b, or a slice of their columns, 16 bytes per
// lane and load; the few rows of a are read beside them from the L1 cache. Warps that have slices of the same rows add their sums in shared
// memory, in order. Products of codes are exact in FP32, and a descale of a block of columns multiplies a lane's sum of 16 of them.

namespace octet::cuda::row_products {

constexpr int warps = 8;
constexpr int piece_bytes = 16;              // that a lane loads at once
constexpr unsigned prefetched_bytes = 2048;  // of each row of b, while earlier work ends: of all warps at once half of the L2 cache

// Without descales; with those of tensors and rows, which multiply finished sums; with those of blocks of columns: f32 of a row of b, f32
// of 128 rows, or e8m0 of a row.
enum class Scaling : std::uint8_t { none, ends, lines, squares, e8m0 };
constexpr bool is_of_blocks(Scaling s) { return s >= Scaling::lines; }

/// An operand's descales as a thread reads them.
struct Descales {
  const void* at = nullptr;
  int row_shift = 0, column_shift = 0;  // of the sides of a block
  int row_step = 0, column_step = 0;    // from a block to the next

  __device__ __forceinline__ int place(int row, int column) const {
    return (row >> row_shift) * row_step + (column >> column_shift) * column_step;
  }
  template <Scaling scaling>
  __device__ __forceinline__ unsigned bits(int row, int column) const {
    if constexpr (scaling == Scaling::e8m0) return static_cast<const std::uint8_t*>(at)[place(row, column)];
    else return static_cast<const unsigned*>(at)[place(row, column)];
  }
};
template <Scaling scaling>
__device__ __forceinline__ float descale_of(unsigned bits) {
  if constexpr (scaling == Scaling::e8m0) return decode_e8m0(std::uint8_t(bits));
  else return __uint_as_float(bits);
}

struct Job {
  const void *a, *b;
  Descales a_scales, b_scales;
  void* d;
  const float* bias;
  DType d_type;
  bool accumulate;
  int M, N, K;
  int slice_bits;  // K is in 1 << slice_bits slices, one per warp
};

template <class T>
inline constexpr int size_in_memory = std::is_same_v<T, E4M3> ? 1 : 2;
template <class T>
inline constexpr int piece_values = piece_bytes / size_in_memory<T>;
template <class T>
inline constexpr int step_values = 32 * piece_values<T>;  // of a row that a warp loads at once

/// Rows of b that a warp reads, for `rows` rows of a: sums are in registers.
template <int rows>
inline constexpr int columns_of = rows <= 2 ? 4 : 2;
/// Steps whose loads are in flight at once.
template <int rows>
inline constexpr int steps_at_once = rows == 1 || rows == 4 ? 2 : 1;
/// Blocks that share a multiprocessor.
template <int rows, bool aligned>
inline constexpr int blocks_at_once = !aligned    ? 1
                                      : rows == 1 ? 3
                                                  : 2;

struct Piece {
  unsigned word[4];
};

/// The values of a word of memory.
template <class T>
struct WordValues {
  static constexpr int count = 4 / size_in_memory<T>;
  float v[count];

  __device__ __forceinline__ explicit WordValues(unsigned word) {
    if constexpr (std::is_same_v<T, E4M3>) decode_two<E4M3>(word, v[0], v[1]), decode_two<E4M3>(word >> 16, v[2], v[3]);
    else pair_values<T>(word, v[0], v[1]);
  }
};

/// Values of a row of which `left` are left; those behind its end are 0. `aligned`: they begin at a multiple of 16 bytes, and the end is
/// none within. Of b, whose values are read once: the L1 cache is for others.
template <class T, bool aligned, bool of_b>
__device__ __forceinline__ Piece load_piece(const std::uint8_t* from, int left) {
  Piece p{};
  if constexpr (!aligned) {
    using Bits = std::conditional_t<size_in_memory<T> == 1, std::uint8_t, std::uint16_t>;
#pragma unroll
    for (int j = 0; j < piece_values<T>; ++j) {
      const unsigned bits = j < left ? reinterpret_cast<const Bits*>(from)[j] : 0;
      p.word[j * size_in_memory<T> / 4] |= bits << (j * size_in_memory<T> % 4 * 8);
    }
  } else if (left > 0) {
    if constexpr (of_b) {
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])
                   : "l"(__cvta_generic_to_global(from)));
    } else {
      const uint4 q = *reinterpret_cast<const uint4*>(from);
      p = {{q.x, q.y, q.z, q.w}};
    }
  }
  return p;
}

/// A warp's part of the product: `columns` columns of d from `column` on, and values [begin, end) of K. With `halves` half of them, and the
/// same ones of d's right half.
template <class T, int rows, Scaling scaling, bool aligned, bool halves = false>
struct Part {
  static constexpr int columns = columns_of<rows>, neighbours = halves ? columns / 2 : columns;
  const Job& job;
  int column, begin, end, lane;

  /// The rows at this lane's next value.
  struct Cursor {
    int k;
    const std::uint8_t *a[rows], *b[columns];
  };
  struct Loaded {
    Piece a[rows], b[columns];
    unsigned a_scale[rows], b_scale[columns];
  };

  __device__ __forceinline__ const std::uint8_t* row_of(const void* x, int row, int k) const {
    return static_cast<const std::uint8_t*>(x) + (std::int64_t(row) * job.K + k) * size_in_memory<T>;
  }
  __device__ __forceinline__ int row_of_b(int i) const { return min(column + i % neighbours, job.N - 1) + i / neighbours * (job.N / 2); }
  __device__ __forceinline__ int row_of_a(int i) const { return min(i, job.M - 1); }

  __device__ __forceinline__ void fetch_ahead() const {
    if (!aligned || lane >= columns || begin >= end) return;
    prefetch(row_of(job.b, row_of_b(lane), begin), min(unsigned(end - begin) * size_in_memory<T>, prefetched_bytes));
  }

  __device__ __forceinline__ Cursor first() const {
    Cursor c{begin + lane * piece_values<T>, {}, {}};
#pragma unroll
    for (int i = 0; i < rows; ++i) c.a[i] = row_of(job.a, row_of_a(i), c.k);
#pragma unroll
    for (int i = 0; i < columns; ++i) c.b[i] = row_of(job.b, row_of_b(i), c.k);
    return c;
  }

  /// `step` steps after the cursor.
  __device__ __forceinline__ void load(const Cursor& c, int step, Loaded& x) const {
    const int k = c.k + step * step_values<T>, at = step * 32 * piece_bytes;
#pragma unroll
    for (int i = 0; i < columns; ++i) x.b[i] = load_piece<T, aligned, true>(c.b[i] + at, end - k);
#pragma unroll
    for (int i = 0; i < rows; ++i) x.a[i] = load_piece<T, aligned, false>(c.a[i] + at, end - k);
    if constexpr (is_of_blocks(scaling)) {
      const int in = k < end ? k : begin;  // beyond the end, of products that are 0
#pragma unroll
      for (int i = 0; i < rows; ++i) x.a_scale[i] = job.a_scales.bits<scaling>(row_of_a(i), in);
#pragma unroll
      for (int i = 0; i < columns; ++i)
        x.b_scale[i] = scaling == Scaling::squares && i % neighbours > 0 ? x.b_scale[i - 1] : job.b_scales.bits<scaling>(row_of_b(i), in);
    }
  }

  static __device__ __forceinline__ void add_products(const Loaded& x, float (&sum)[columns][rows]) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        const WordValues<T> b(x.b[i].word[w]);
#pragma unroll
        for (int m = 0; m < rows; ++m) {
          const WordValues<T> a(x.a[m].word[w]);
#pragma unroll
          for (int j = 0; j < WordValues<T>::count; ++j) sum[i][m] = fmaf(a.v[j], b.v[j], sum[i][m]);
        }
      }
    }
  }

  static __device__ __forceinline__ void add(const Loaded& x, float (&sum)[columns][rows]) {
    if constexpr (is_of_blocks(scaling)) {
      float products[columns][rows] = {};
      add_products(x, products);
#pragma unroll
      for (int i = 0; i < columns; ++i)
#pragma unroll
        for (int m = 0; m < rows; ++m)
          sum[i][m] = fmaf(products[i][m], descale_of<scaling>(x.a_scale[m]) * descale_of<scaling>(x.b_scale[i]), sum[i][m]);
    } else {
      add_products(x, sum);
    }
  }

  /// The sums of all lanes.
  __device__ __forceinline__ void multiply(float (&sum)[columns][rows]) const {
    constexpr int at_once = steps_at_once<rows>;
    Cursor c = first();
#pragma unroll 1
    for (; c.k < end; c.k += at_once * step_values<T>) {
      Loaded loaded[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) load(c, i, loaded[i]);
#pragma unroll
      for (int i = 0; i < at_once; ++i) add(loaded[i], sum);
#pragma unroll
      for (int i = 0; i < rows; ++i) c.a[i] += at_once * 32 * piece_bytes;
#pragma unroll
      for (int i = 0; i < columns; ++i) c.b[i] += at_once * 32 * piece_bytes;
    }
#pragma unroll
    for (int i = 0; i < columns; ++i)
#pragma unroll
      for (int m = 0; m < rows; ++m) sum[i][m] = warp_sum(sum[i][m]);
  }
};

/// A finished sum of d[m, n].
template <Scaling scaling>
__device__ __forceinline__ float finished(const Job& job, int m, int n, float x) {
  if constexpr (scaling == Scaling::ends)
    x = x * descale_of<scaling>(job.a_scales.bits<scaling>(m, 0)) * descale_of<scaling>(job.b_scales.bits<scaling>(n, 0));
  return job.bias != nullptr ? x + job.bias[n] : x;
}

inline int shift_of(std::int64_t side) { return side == 0 ? 31 : std::countr_zero(std::uint64_t(side)); }

inline Descales descales_of(const Quantized& q) {
  if (!q.descales) return {};
  const DescaleStride s = descale_stride(q.block, q.descales.dtype, q.rows(), q.cols());
  return {q.descales.data, shift_of(q.block.rows), shift_of(q.block.cols), int(s.row_block), int(s.col_block)};
}

// As many slices as let all warps run at once, so that where there are few columns, enough loads are in flight on every multiprocessor.
inline int slice_bits_for(std::int64_t parts, std::int64_t steps, int warps_at_once) {
  int bits = 0;
  while (2 << bits <= warps && 2 << bits <= steps && parts << (bits + 1) <= facts().multiprocessors * warps_at_once) ++bits;
  return bits;
}

inline Job job_of(const ops::Gemm& g) {
  return {.a = g.a.codes.data,
          .b = g.b.codes.data,
          .a_scales = descales_of(g.a),
          .b_scales = descales_of(g.b),
          .d = g.d.data,
          .bias = g.bias.f32(),
          .d_type = g.d.dtype,
          .accumulate = g.accumulate,
          .M = int(g.d.shape[0]),
          .N = int(g.d.shape[1]),
          .K = int(g.a.cols()),
          .slice_bits = 0};
}

/// f<T, scaling>() of the operands.
template <class F>
void with_operands(const ops::Gemm& g, const F& f) {
  if (g.b.codes.dtype == DType::bf16) return f.template operator()<Bf16, Scaling::none>();
  if (g.b.codes.dtype == DType::f16) return f.template operator()<Fp16, Scaling::none>();
  if (g.b.descales.dtype == DType::e8m0) return f.template operator()<E4M3, Scaling::e8m0>();
  if (g.a.block.cols == 0 && g.b.block.cols == 0) return f.template operator()<E4M3, Scaling::ends>();
  if (g.b.block.rows == 1) return f.template operator()<E4M3, Scaling::lines>();
  f.template operator()<E4M3, Scaling::squares>();
}

}  // namespace octet::cuda::row_products
