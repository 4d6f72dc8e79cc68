#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// The one GEMM of this engine. FP8 operands are K-contiguous, the form that Hopper's FP8 tensor cores read; f32 and bf16 operands
/// may be transposed views, since every library multiplies those in place.
///
///   d[m, n] (+)= sum_k a[m, k] * b[n, k] (+ bias[n])
///
/// a: [M, K]; b: [N, K]; d: [M, N] f32 or bf16; bias: f32 [N] or empty. Sums are FP32 whatever the operands' format. Products of FP8
/// codes are exact; power-of-two descales are exact too, others multiply the finished sum (per tensor) or each operand once.
struct Gemm {
  const Quantized& a;
  const Quantized& b;
  Tensor d;
  Tensor bias = {};
  bool accumulate = false;         // d += instead of d =; d must be f32
  bool fast_accumulation = false;  // GPUs: partial sums may stay in the tensor core's short accumulator; no effect on the CPU
};

/// Throws ContractError on mismatched shapes or operands that have no kernel. Workspace, from scratch: the decoded
/// operands, and f32 sums [M, N] where they cannot be made in d.
void gemm(Stream&, const Gemm&);

/// The type in which this machine's CPU multiplies faster, bf16 or f32, and its rate, measured once per process (about 0.1 s).
struct GemmLimit {
  DType compute = DType::f32;
  double flops_per_second = 0;      // best of the two, at 1024^3
  double f32_flops_per_second = 0, bf16_flops_per_second = 0;
};
const GemmLimit& measured_gemm_limit();
/// Version of oneDNN, such as "2.6.3".
std::string gemm_library();

/// db[n] += sum_m x[m, n]; x f32 or bf16, db f32 [N]. The gradient of a bias.
void add_column_sums(Stream&, const Tensor& x, const Tensor& db);

}  // namespace octet::ops
