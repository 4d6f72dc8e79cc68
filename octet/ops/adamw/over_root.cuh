#pragma once

// Only for *.cuda.cu files: the direction of an update, of several values at once.

#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {

/// a / (sqrt(x) + eps) with every operation correctly rounded, as the compiler computes it for one value after checks of its range. Here
/// one check covers the values of a pack: those that are not 0 must be between 2^-60 and 2^30, in x 2^60, so that no intermediate value
/// leaves the range of normal numbers. Otherwise they are processed one by one.
template <int N>
__device__ __forceinline__ Pack<N> over_root(const Pack<N>& a, const Pack<N>& x, float eps) {
  // The bits of a positive float less one: those of 0 become the largest.
  constexpr unsigned least_bits = (127 - 60) << 23;
  unsigned least_a = ~0u, least_x = ~0u;
  float most = fabsf(eps);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    least_a = min(least_a, 2 * __float_as_uint(a.v[i]) - 1);
    least_x = min(least_x, __float_as_uint(x.v[i]) - 1);
    most = __fmaf_rn(a.v[i], a.v[i], most) + x.v[i];  // at least a^2 and x
  }
  if (!(least_a >= 2 * least_bits - 1 && least_x >= least_bits - 1 && most <= 0x1p60f && eps >= 0x1p-60f))
    return map(a, x, [eps](float p, float q) { return p / (sqrtf(q) + eps); });
  return map(a, x, [eps](float p, float q) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(q + 0x1p-100f));  // of 0: any
    const float near_root = q * r, b = __fmaf_rn(__fmaf_rn(-near_root, near_root, q), r * 0.5f, near_root) + eps;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    r = __fmaf_rn(r, __fmaf_rn(-b, r, 1.0f), r);
    const float near = p * r;
    return __fmaf_rn(-__fmaf_rn(b, near, -p), r, near);  // the sign of a 0 stays
  });
}

}  // namespace octet::cuda
