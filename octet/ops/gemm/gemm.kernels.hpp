#pragma once

#include <optional>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/gemm/gemm_algorithms.hpp"
#include "octet/ops/gemm/operands.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {

/// How an operand is scaled; nothing when no library has a name for it.
std::optional<GemmScale> gemm_scale(const Quantized&);

/// How a GPU multiplies.
enum class GemmWay : std::uint8_t {
  as_is,     // cuBLASLt, operands as they are: one type of bf16, f16 or f32; codes per tensor, on Hopper also by rows and blocks of 128
  tiled,     // cuBLASLt, codes as they are, their scales of 32 values rearranged in tiles: Blackwell
  promoted,  // Octet's kernels for Hopper: blocks of 1x128 by 1x128 or 128x128 where cuBLASLt has none, both operands e5m2, or M or N no
             // multiple of 16; K must be a multiple of 16, and a row of d of 16 bytes
  few_rows,  // Octet's kernel that reads b once: up to few_rows rows of one type, bf16, f16 or e4m3 with any scales
  parts,     // cuBLASLt, f32 in three parts of bf16: by bf16, or by f32 into a 16-bit d
  decoded,   // cuBLASLt, after the codes were decoded to bf16 or f32
};

/// On a CPU, a product with few rows, such as that of one token: d[m, n] = alpha * sum_k a[m, k] b[n, k] (+ bias[n]). a: [M, K] and
/// b: [N, K], both f32 or both bf16; d: f32, bf16 or f16; bias: f32 [N] or null. b is read once, in its order. A row's bits depend on no
/// other row and on no number of threads.
struct FewRows {
  Tensor a, b, d;
  float alpha = 1;
  const float* bias = nullptr;
};
/// Scratch of a GEMM on a GPU.
struct GemmSpace {
  GemmWay way = GemmWay::as_is;
  GemmReady a, b;             // of GemmWay::parts, values of an f32 operand are its parts
  Tensor a_scales, b_scales;  // u8, where scales are tiled
  Tensor factor;              // f32 [64], of decoded operands with one descale; else empty
  Tensor bias;                // d's 16-bit type [N], when d has a bias that the library adds
  Tensor sums;                // f32 [M, N], when a separate pass rounds the sums to a 16-bit d
  Tensor workspace;           // u8 [gemm_workspace_bytes], the library's
};

}  // namespace octet::ops

namespace octet::cuda {
/// to = from's values in three parts of bf16, one matrix behind the other: [3 R, C] of [R, C].
void split_f32(Queue, const Tensor& from, const Tensor& to);
/// to = six parts of each value side by side along K, so that the sum over them is the product with the other operand's: [R, 6 C] of
/// [R, C = K], or of a transposed view [6 R, C] of [R = K, C].
void split_f32_along_k(Queue, const Quantized& from, bool left, const Tensor& to);
void gemm(Queue, const ops::Gemm&, const ops::GemmSpace&, bool deterministic);
/// The same by Octet's own kernel: any sizes, formats and scale blocks, no workspace, slow.
void plain_gemm(Queue, const ops::Gemm&);
/// The same by Octet's own kernel for operands of GemmWay::few_rows. Sums are FP32 in an order that the shape and the GPU fix; where a
/// scale has a block of columns, it multiplies sums of 16 products.
void few_rows_gemm(Queue, const ops::Gemm&);
ops::GpuGemmLimit measure_gemm_limit();
std::string gemm_library();
}  // namespace octet::cuda

OCTET_KERNEL(multiply_few_rows, const ops::FewRows&)
/// d = alpha * sums + bias[column], rounded to d's dtype, bf16 or f16; sums f32; bias f32 or null.
OCTET_KERNEL(round_sums, const Tensor& sums, float alpha, const float* bias, const Tensor& d)
/// d += alpha * sums + bias[column], rounded to d's dtype, f32, bf16 or f16; sums f32; bias f32 or null.
OCTET_KERNEL(add_sums, const Tensor& sums, float alpha, const float* bias, const Tensor& d)
/// db[n] += sum_m x[m, n], always in the same order. parts: scratch of a GPU, f32 [strips of rows, N].
OCTET_KERNEL(add_column_sums, const Tensor& x, const Tensor& db, const Tensor& parts)
