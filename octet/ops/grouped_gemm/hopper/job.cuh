#pragma once

// Only for *.sm90a.cu files: jobs of the promoted GEMMs from the operands of ops.

#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/kernel.cuh"

namespace octet::cuda::tiles {

inline CUtensorMapDataType map_type(DType t) {
  switch (t) {
    case DType::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::f32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    default: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

/// A matrix as boxes of `rows` rows are copied from it.
inline CUtensorMap matrix_map(const Tensor& t, std::int64_t rows, std::int64_t columns, unsigned box_rows_) {
  return TensorMap3{map_type(t.dtype), size_of(t.dtype), {columns, rows, 1}, {columns, rows * columns}, {box_rows_, 1}}.over(t.data);
}
/// A stack of matrices: [groups N, K], or side by side, [N, groups K].
inline CUtensorMap stack_map(const Tensor& t, std::int64_t groups, std::int64_t N, std::int64_t K, bool side_by_side, bool turned,
                             unsigned box) {
  const std::size_t size = size_of(t.dtype);
  if (turned) return TensorMap3{map_type(t.dtype), size, {N, K, groups}, {N, N * K}, {unsigned(half_rows), 1}}.over(t.data);
  if (side_by_side) return TensorMap3{map_type(t.dtype), size, {K, groups, N}, {K, groups * K}, {1, box}}.over(t.data);
  return TensorMap3{map_type(t.dtype), size, {K, N, groups}, {K, N * K}, {box, 1}}.over(t.data);
}
/// 1x128 scales, [blocks of K, rows], as boxes of `count` rows' are copied.
inline CUtensorMap scales_map(const Quantized& q, int count) {
  const Shape s = q.descales.shape;
  return tensor_map(q.descales.data, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, s[0], s[1], s[1], 1, unsigned(count), false);
}

/// The operands of one product, dense or in groups.
struct Operands {
  const Quantized& a;
  const Quantized& b;
  const ops::RowGroups* groups;  // null: dense
  bool stack_columns;
  Tensor d, bias;
  bool accumulate;

  static Operands of(const ops::GroupedGemm& g) { return {g.a, g.b, &g.groups, g.stack_columns, g.d, {}, g.accumulate}; }
  static Operands of(const ops::Gemm& g) { return {g.a, g.b, nullptr, false, g.d, g.bias, g.accumulate}; }
};

/// Whether this is a Hopper and TMA can read the operands: addresses that are multiples of 16, and rows of as many bytes.
inline bool readable(const Operands& o) {
  std::uintptr_t all = 0;
  for (const Tensor* t : {&o.a.codes, &o.b.codes, &o.a.descales, &o.b.descales, &o.d}) {
    all |= reinterpret_cast<std::uintptr_t>(t->data);
    if (t->shape.rank == 2) all |= std::uintptr_t(t->shape[1]) * size_of(t->dtype);
  }
  if (o.groups != nullptr && o.stack_columns && !o.b.transposed) all |= std::uintptr_t(o.a.cols()) * size_of(o.b.codes.dtype);
  const bool tiles = o.groups == nullptr || o.groups->tile % wave_rows == 0;
  return all % 16 == 0 && tiles && facts().major == 9 && o.d.count() > 0 && o.a.cols() > 0;
}

/// Runs f<A, B>() for the formats of two 8-bit operands.
template <class Run>
void with_formats(const Operands& o, const Run& f) {
  dispatch<E4M3, E5M2>(o.a.codes.dtype, "gemm", [&]<class A>() {
    dispatch<E4M3, E5M2>(o.b.codes.dtype, "gemm", [&]<class B>() { f.template operator()<A, B>(); });
  });
}
/// Pairs of tiles share their rows of `a` where N has an even number of tiles; else half of the last pair would be idle.
inline bool pairs(const Operands& o) { return ceil_div(o.d.shape[1], tile_columns) % 2 == 0; }

template <class F>
Job job_of(const Operands& o) {
  const std::int64_t E = o.groups != nullptr ? o.groups->size() : 1;
  constexpr bool rows = F::groups == Groups::rows;
  const std::int64_t M = o.d.shape[0] / (rows ? 1 : E), N = o.d.shape[1], K = o.a.cols();
  const std::int64_t b_rows = rows ? N : o.b.rows(), b_groups = rows ? E : 1;
  Job job{.a = F::a_turned ? matrix_map(o.a.codes, K, o.a.rows(), half_rows) : matrix_map(o.a.codes, o.a.rows(), K, half_rows),
          .b = stack_map(o.b.codes, b_groups, b_rows, K, o.stack_columns, F::b_turned, unsigned(F::b_shared ? half_rows : tile_columns)),
          .begin = o.groups != nullptr ? o.groups->begin.as<std::int32_t>() : nullptr,
          .count = o.groups != nullptr ? o.groups->count.as<std::int32_t>() : nullptr,
          .groups = int(E),
          .M = int(M),
          .N = int(N),
          .K = int(K),
          .columns_of_clusters = int(ceil_div(N, tile_columns * (F::a_shared ? 2 : 1))),
          .stack_columns = o.stack_columns,
          .bias = o.bias.f32(),
          .write = o.accumulate ? Write::add : Write::store,
          .d_type = o.d.dtype,
          .d_data = o.d.data};
  const std::int64_t matrices = rows ? 1 : E;
  job.d = TensorMap3{map_type(o.d.dtype), size_of(o.d.dtype), {N, M, matrices}, {N, M * N}, {unsigned(F::box_rows), 1}}.over(o.d.data);
  if constexpr (Shared<F>::a_scaled) job.a_scale = scales_map(o.a, F::waves * wave_rows);
  if constexpr (Shared<F>::b_scaled) job.b_scale = scales_map(o.b, tile_columns);
  if constexpr (F::promotion == Promotion::square) {
    job.squares = o.b.descales.f32(), job.squares_row = int(o.b.descales.shape[1]);
    job.squares_group = int(o.stack_columns ? K / 128 : N / 128 * o.b.descales.shape[1]);
  } else if constexpr (!Shared<F>::a_scaled) {
    if (o.a.descales) {
      job.a_factor = o.a.descales.f32(), job.b_factor = o.b.descales.f32();
      const bool whole = o.b.block.whole_tensor(), per_matrix = ops::descale_per_matrix(o.b);
      job.a_factor_step = o.a.block.whole_tensor() ? 0 : 1, job.b_factor_step = whole || per_matrix ? 0 : 1;
      job.b_factor_group = per_matrix ? 1 : rows && !o.stack_columns && !whole ? int(N) : 0;
    }
  }
  return job;
}

/// Multiplies by a form's kernel.
template <class A, class B, class F>
void multiply_by(Queue queue, const Operands& o) {
  if (o.accumulate && o.d.dtype != DType::f32) launch<A, B, Adding<F>>(queue, job_of<Adding<F>>(o));
  else launch<A, B, F>(queue, job_of<F>(o));
}

}  // namespace octet::cuda::tiles
