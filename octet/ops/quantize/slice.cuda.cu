#include "octet/ops/quantize/slice.kernels.hpp"
#include "octet/ops/quantize/cuda/tile_codes.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int slice_threads = 256, most_blocks = 2048;

/// A slice as a kernel reads it, 8 values at a time: they lie in one row, since rows and slices begin at multiples of 16.
template <class T>
struct SliceValues {
  const T* at;
  const float* factor;  // of FP16
  std::int64_t eights, first, cols;

  __device__ __forceinline__ Eight<float> operator[](std::int64_t i) const {
    const Pack<8> x = load<8>(at, i * 8);
    if constexpr (std::is_same_v<T, Fp16>) return Eight<float>::of(x * __ldg(factor));
    else return Eight<float>::of(x);
  }
};

/// The entry of the block of eight values.
struct Table {
  float* at;
  std::int64_t block_rows, block_cols, row_stride, col_stride;  // blocks of 0 rows: one for all

  template <class T>
  __device__ __forceinline__ float* of(const SliceValues<T>& s, std::int64_t i) const {
    if (at == nullptr || block_rows == 0) return at;
    const std::int64_t e = s.first + i * 8;
    if (block_cols == 0) return at + e / s.cols / block_rows * row_stride;
    return at + e / s.cols / block_rows * row_stride + e % s.cols / block_cols * col_stride;
  }
};

/// A warp's threads that have the same entry raise it once.
__device__ __forceinline__ void raise_together(float* to, float top) {
  const unsigned same = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(to));
  const unsigned highest = __reduce_max_sync(same, __float_as_uint(top));
  if (int(threadIdx.x) % 32 == __ffs(int(same)) - 1) raise(to, __uint_as_float(highest));
}

template <class T>
__global__ void __launch_bounds__(slice_threads) slice_maxima_kernel(SliceValues<T> s, Table maxima) {
  const std::int64_t step = std::int64_t(gridDim.x) * slice_threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * slice_threads + threadIdx.x; i < s.eights; i += step) {
    Tops<float> tops;
    tops.raise(s[i]);
    raise_together(maxima.of(s, i), tops.top());
  }
}

struct SliceJob {
  Table scales, descales, maxima;  // descales of known scales, otherwise null; maxima may be null
  ops::QuantizeHealth* health;
  bool count, noise;
  std::uint8_t* codes;
};

__device__ __forceinline__ float least_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fminf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

template <class Format, class T>
__global__ void __launch_bounds__(slice_threads) quantize_slice_kernel(SliceValues<T> s, SliceJob job) {
  Tally tally;
  float* seen = nullptr;  // the entry of the maximum that a thread raises last
  float amax = 0, least = INFINITY, greatest = 0;
  const std::int64_t step = std::int64_t(gridDim.x) * slice_threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * slice_threads + threadIdx.x; i < s.eights; i += step) {
    const Eight<float> x = s[i];
    const float scale = *job.scales.of(s, i);
    const auto scale_of = [scale](int) { return scale; };
    const uint2 codes = encode_eight<Format>(x, scale_of);
    *reinterpret_cast<uint2*>(job.codes + i * 8) = codes;
    Tops<float> tops;
    tops.raise(x);
    if (float* const entry = job.maxima.of(s, i); entry != seen) {
      if (seen != nullptr) raise_together(seen, amax);
      seen = entry, amax = 0;
    }
    amax = fmaxf(tops.top(), amax), least = fminf(scale, least), greatest = fmaxf(scale, greatest);
    if (job.health == nullptr) continue;
    count_each<Format>(x, codes, scale_of, tally);
    if (job.noise) measure_noise<Format>({.descale = job.descales.of(s, i)}, x, codes, scale_of, tally);
  }
  if (seen != nullptr) raise_together(seen, amax);
  least = least_of_warp(least), greatest = -least_of_warp(-greatest);
  const bool first = threadIdx.x % 32 == 0;
  if (job.health == nullptr) return;
  if (first && greatest > 0) widen_range(job.health, least, greatest);
  if (job.count) add_count(&job.health->saturated, tally.saturated), add_count(&job.health->flushed, tally.flushed);
  add_count(&job.health->nonfinite, tally.nonfinite);
  if (job.noise) add_sum(&job.health->signal, tally.signal), add_sum(&job.health->noise, tally.noise);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(&job.health->values), static_cast<unsigned long long>(s.eights * 8));
}

__global__ void scales_of_maxima_kernel(std::int64_t n, BlockRule rule, const float* maxima, float* scales, float* descales) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const auto s = block_scale(maxima[i], rule);
  scales[i] = s.scale, descales[i] = s.descale;
}

Table table_of(const ops::BlockTable& t) { return {t.at.f32(), t.block.rows, t.block.cols, t.stride.row_block, t.stride.col_block}; }

/// f(slice, blocks of threads) for the type of the values.
template <class F>
void with_values(const ops::MatrixSlice& s, const F& f) {
  const std::int64_t eights = s.values.count() / 8, wanted = ceil_div(eights, slice_threads);
  const unsigned blocks = unsigned(wanted < most_blocks ? wanted : most_blocks);
  dispatch<float, Bf16, Fp16>(s.values.dtype, "slice", [&]<class T>() {
    f(SliceValues<T>{s.values.as<T>(), s.factor.f32(), eights, s.first, s.cols}, blocks);
  });
}

}  // namespace

void slice_maxima(Queue queue, const ops::MatrixSlice& s, const ops::BlockTable& maxima) {
  with_values(s, [&]<class T>(const SliceValues<T>& values, unsigned blocks) {
    slice_maxima_kernel<<<blocks, slice_threads, 0, queue>>>(values, table_of(maxima));
    launched("slice_maxima_kernel");
  });
}

void quantize_slice(Queue queue, const ops::MatrixSlice& s, const ops::QuantizeSpec& spec, const ops::SliceTables& tables,
                    const Tensor& codes) {
  const SliceJob job{.scales = table_of(tables.scales),
                     .descales = table_of(tables.descales),
                     .maxima = table_of(tables.maxima),
                     .health = spec.health,
                     .count = spec.count,
                     .noise = spec.measure_noise,
                     .codes = codes.u8()};
  with_values(s, [&]<class T>(const SliceValues<T>& values, unsigned blocks) {
    if (spec.format == DType::e5m2) quantize_slice_kernel<E5M2><<<blocks, slice_threads, 0, queue>>>(values, job);
    else quantize_slice_kernel<E4M3><<<blocks, slice_threads, 0, queue>>>(values, job);
    launched("quantize_slice_kernel");
  });
}

void scales_of_maxima(Queue queue, const BlockRule& rule, std::int64_t n, const float* maxima, float* scales, float* descales) {
  if (n == 0) return;
  scales_of_maxima_kernel<<<unsigned(ceil_div(n, 256)), 256, 0, queue>>>(n, rule, maxima, scales, descales);
  launched("scales_of_maxima_kernel");
}

}  // namespace octet::cuda
