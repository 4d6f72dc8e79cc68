#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The one GEMM of this engine. FP8 operands are K-contiguous, the form that Hopper's FP8 tensor cores read; f32 and 16-bit operands
/// may be transposed views, since every library multiplies those in place. On a CPU FP8 operands may be so too, and may be decoded
/// (SinkRequest::for_gemm).
///
///   d[m, n] (+)= sum_k a[m, k] * b[n, k] (+ bias[n])
///
/// a: [M, K]; b: [N, K]; d: [M, N] f32, bf16 or f16; bias: f32 [N] or empty. Sums are FP32 for every format of operands. Products of FP8
/// codes are exact; power-of-two descales are exact too, others multiply the finished sum (per tensor) or each operand once.
///
/// On a GPU, cuBLASLt multiplies FP8 as it is stored when the scale blocks are tensor by tensor, row by row, or 1x128 by 1x128 or 128x128,
/// not both operands are e5m2, and M, N and K are multiples of 16. Up to few_rows rows of bf16, f16 or e4m3, by a matrix of the same type,
/// are multiplied by a kernel of Octet, as they are stored. On Hopper Octet's own kernels multiply 1x128 by 1x128 or 128x128 where they are
/// faster, and where only these conditions fail, if K is a multiple of 16 and rows of d have whole 16 bytes. All other FP8 operands, also
/// those multiplied by 16-bit ones, are decoded first, to bf16 where that is exact and to f32 where not, which gives the same result at the
/// rate of those types. So does the CPU. f32 is never multiplied as TF32. On a GPU, f32 by bf16, and f32 by f32 into a 16-bit d, are
/// multiplied in parts of bf16 (octet/numerics/bf16_parts.hpp): products by bf16 are exact, and of f32 by f32 those below 2^-22 of the
/// largest are left out. There infinite values may give NaN. Partial sums of FP8 are promoted to FP32 every 128 products, unless
/// `fast_accumulation`. A bias may be rounded to the type of a 16-bit d. Sums beyond the largest f16 become infinite in an f16 d.
struct Gemm {
  const Quantized& a;
  const Quantized& b;
  Tensor d;
  Tensor bias = {};
  bool accumulate = false;         // d += instead of d =; a 16-bit d is rounded once, after the addition
  bool fast_accumulation = false;  // GPUs: partial sums may stay in the tensor core's short accumulator; no effect on the CPU
  bool untimed = false;            // GPUs: the library's first algorithm, so that all processes on such a GPU get the same bits
};

/// Rows of d up to which a product takes as long as reading b. Kernels of Octet multiply those, on a GPU as on a CPU, as a token that is
/// generated needs them.
inline constexpr std::int64_t few_rows = 8;

/// Throws ContractError on mismatched shapes or operands that have no kernel. Workspace, from scratch: the decoded operands; f32 sums
/// [M, N] where they cannot be made in d; on a GPU also gemm_workspace_bytes and the rounded bias.
void gemm(Stream&, const Gemm&);
/// cuBLASLt's workspace: enough to divide the sums of a small result over the whole GPU.
inline constexpr std::int64_t gemm_workspace_bytes = std::int64_t(64) << 20;

/// The type that a CPU's GEMMs decode 8-bit codes to: bf16 where oneDNN has instructions for it (AVX512-BF16, AMX), else f32. It follows
/// from the processor alone, so that every process on it computes the same bits.
DType gemm_compute();

/// Rates of this machine's CPU, measured once per process (about 0.1 s); `compute` is gemm_compute().
struct GemmLimit {
  DType compute = DType::f32;
  double flops_per_second = 0;  // of `compute`, at 1024^3
  double f32_flops_per_second = 0, bf16_flops_per_second = 0;
};
const GemmLimit& measured_gemm_limit();

/// Rates of this machine's GPU on random data at 8192^3, measured once per process (about a second, 0.5 GB of its memory). fp8 is e4m3
/// by e4m3, one descale per tensor, promoted sums. Throws DeviceError where there is no GPU.
struct GpuGemmLimit {
  double fp8_flops_per_second = 0, bf16_flops_per_second = 0;
};
const GpuGemmLimit& measured_gpu_gemm_limit();

/// The library that multiplies: oneDNN's version, such as "2.6.3"; for Device::cuda "cuBLASLt 13.1.0 on NVIDIA H200". Throws DeviceError
/// where there is no GPU.
std::string gemm_library(Device = Device::cpu);

/// db[n] += sum_m x[m, n]; x f32, bf16 or f16, db f32 [N]. The gradient of a bias. Throws ContractError on other shapes or
/// dtypes. Workspace on a GPU, from scratch: f32, up to [256, N].
void add_column_sums(Stream&, const Tensor& x, const Tensor& db);

}  // namespace octet::ops
