#pragma once

// Only for *.cuda.cu files: counts and squared errors of codes, for QuantizeHealth. See tile.cuh.

#include "octet/ops/quantize/cuda/tile_scales.cuh"

namespace octet::cuda {

/// Health counts of one thread's values.
struct Tally {
  int saturated = 0, flushed = 0, nonfinite = 0;
  double signal = 0, noise = 0;
};

/// Counts of saturated, non-finite and flushed values among eight of a row.
template <class Format, class T, class Scale>
__device__ __forceinline__ void count_each(const Eight<T>& x, uint2 codes, const Scale& scale, Tally& tally) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float v = x[j];
    tally.saturated += fabsf(v * scale(j)) > Format::nearest_to_max;
    tally.nonfinite += !(fabsf(v) < INFINITY);
    tally.flushed += v != 0.0f && (byte_of(codes, j) & 0x7F) == 0;
  }
}
/// The value of a code of scale 1.
__device__ __forceinline__ float descale_of(const TileJob& job, float scale) { return job.descale ? *job.descale : 1.0f / scale; }

/// And the squared errors of the codes: of any values, in doubles.
template <class Format, class T, class Scale>
__device__ __forceinline__ void measure_noise(const TileJob& job, const Eight<T>& x, uint2 codes, const Scale& scale, Tally& tally) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float v = x[j];
    if (!(fabsf(v) < INFINITY)) continue;
    const double a = v, d = double(decode_one<Format>(byte_of(codes, j)) * descale_of(job, scale(j)));
    tally.signal += a * a, tally.noise += (a - d) * (a - d);
  }
}

/// The same of values with one scale none of which lands beyond the format's largest, as sums in f32 of squares of x * scale and of its
/// distance from the code: five instructions per value, where doubles need their conversions. A few hundred terms differ from sums in
/// doubles by less than 2^-17 of the signal.
struct Squares {
  float signal = 0, noise = 0;

  template <class Format, class T>
  __device__ __forceinline__ void add(const Eight<T>& x, uint2 codes, float scale) {
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      float d[2];
      decode_two<Format>((j < 4 ? codes.x : codes.y) >> j % 4 * 8, d[0], d[1]);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const float scaled = x[j + k] * scale, error = scaled - d[k];
        signal = fmaf(scaled, scaled, signal), noise = fmaf(error, error, noise);
      }
    }
  }
  __device__ __forceinline__ void add_to(Tally& tally, float descale) const {
    const double d = descale, unit = d * d;
    tally.signal += unit * double(signal), tally.noise += unit * double(noise);
  }
};

/// The next row becomes the first, so that a loop over eight rows shares the registers of one.
template <class T>
__device__ __forceinline__ void rotate(Eight<T> (&v)[8], uint2 (&codes)[8]) {
  const Eight<T> x = v[0];
  const uint2 c = codes[0];
#pragma unroll
  for (int k = 0; k < 7; ++k) v[k] = v[k + 1], codes[k] = codes[k + 1];
  v[7] = x, codes[7] = c;
}

/// scale(i, j) is that of v[i][j]; by_rows: the same for all of a row. `beyond`: see Found. Otherwise it is enough to count bytes, except
/// where there are NaN. Value by value is rare.
template <class Format, bool by_rows, class T, class Scale>
__device__ __forceinline__ void count(const TileJob& job, Eight<T> (&v)[8], uint2 (&codes)[8], bool beyond, const Scale& scale,
                                      Tally& tally) {
  unsigned nan = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) nan |= nan_of(codes[i]);
  const bool exact = beyond || nan != 0;
  if (!exact && job.count) {
    unsigned values = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) values += v[i].nonzero();
    tally.flushed += sum_of_halves(values) - nonzero_of(codes) - nonzero_of(codes + 4);
  }
  if (!exact && !job.noise) return;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    const auto scale_of = [&](int j) { return scale(i, j); };
    if (exact) count_each<Format>(v[0], codes[0], scale_of, tally);
    if (by_rows && !exact) {
      const float s = scale(i, 0);
      Squares squares;
      squares.add<Format>(v[0], codes[0], s);
      squares.add_to(tally, descale_of(job, s));
    } else if (job.noise) {
      measure_noise<Format>(job, v[0], codes[0], scale_of, tally);
    }
    rotate(v, codes);
  }
}

__device__ __forceinline__ void add_count(std::int64_t* to, int n) {
  n = __reduce_add_sync(~0u, n);
  if (n != 0 && threadIdx.x % 32 == 0) atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
}
__device__ __forceinline__ double sum_of_warp(double x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}
__device__ __forceinline__ void add_sum(double* to, double x) {
  x = sum_of_warp(x);
  if (threadIdx.x % 32 == 0) atomicAdd(to, x);
}

/// Of each warp of a block: saturated, flushed, signal, noise.
using Reported = double[4][tile_threads / 32];

__device__ __forceinline__ void report_values(const TileJob& job, const Spot& at, int nonfinite) {
  add_count(&job.health->nonfinite, nonfinite);
  if (at.row0 == 0 && at.col0 == 0 && threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&job.health->values), static_cast<unsigned long long>(job.rows * job.cols));
}
/// One addition to memory per number and block: thousands of blocks add to the same address. All threads of the block call.
__device__ __forceinline__ void report(const TileJob& job, const Spot& at, const Tally& tally, Reported& shared) {
  report_values(job, at, tally.nonfinite);
  if (!job.count && !job.noise) return;
  const int thread = int(threadIdx.x), warp = thread / 32;
  const int saturated = __reduce_add_sync(~0u, tally.saturated), flushed = __reduce_add_sync(~0u, tally.flushed);
  const double signal = sum_of_warp(tally.signal), noise = sum_of_warp(tally.noise);
  if (thread % 32 == 0) shared[0][warp] = saturated, shared[1][warp] = flushed, shared[2][warp] = signal, shared[3][warp] = noise;
  __syncthreads();
  if (thread >= 4 || !(thread < 2 ? job.count : job.noise)) return;
  double sum = 0;
#pragma unroll 1
  for (const double one : shared[thread]) sum += one;
  ops::QuantizeHealth* const h = job.health;
  if (sum == 0) return;
  if (thread < 2)
    atomicAdd(reinterpret_cast<unsigned long long*>(thread == 0 ? &h->saturated : &h->flushed), static_cast<unsigned long long>(sum));
  else atomicAdd(thread == 2 ? &h->signal : &h->noise, sum);
}

}  // namespace octet::cuda
