#pragma once

#include "octet/tensor/tensor.hpp"

namespace octet::ops {

/// d[m, n] (+)= alpha * sum_k a[m, k] * b[n, k] (+ bias[n]) by oneDNN. a and b have one type, f32 or bf16, and the sums are FP32.
struct Multiplication {
  std::int64_t M, N, K;
  DType type;                           // of a and b
  DType result;                         // of d
  bool a_transposed, b_transposed;      // stored [K, M], [K, N]
  bool scaled, biased, accumulate;      // alpha and bias are present; d += instead of d =, which excludes alpha
  std::int64_t a_step = 0, b_step = 0;  // values from one stored row to the next; 0: rows are dense
  friend auto operator<=>(const Multiplication&, const Multiplication&) = default;
};

/// Runs it on this process's OpenMP threads; M, N and K are positive. oneDNN's primitive of a form is cached for the next call.
/// Throws DeviceError where the library has no kernel for it on this machine.
void multiply(const Multiplication&, const void* a, const void* b, void* d, float alpha, const float* bias);

}  // namespace octet::ops
