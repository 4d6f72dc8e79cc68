#include "octet/ops/column_codes/column_codes.kernels.hpp"
#include "octet/ops/quantize/cuda/tile_codes.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int column_threads = 256, most_blocks = 1024;

// The eights of one group: neighbouring threads take neighbours of a row.
struct GroupPlace {
  std::int64_t eights, row, first;  // of a row; columns of the matrix; the group's first one
  const float *scale, *descale;
  float* amax;
  ops::QuantizeHealth* health;
  bool count, noise;

  __device__ __forceinline__ std::int64_t at(std::int64_t i) const { return i / eights * row + first + i % eights * 8; }
};
struct GroupPlaces {
  GroupPlace of[3];
  std::int64_t rows;
};

GroupPlaces places_of(const Tensor& x, const ops::ColumnGroups& groups) {
  GroupPlaces out{{}, x.shape[0]};
  std::int64_t first = 0;
  for (int g = 0; g < 3; ++g) {
    const ops::ColumnGroup& group = groups[std::size_t(g)];
    const ops::QuantizeSpec& s = group.spec;
    out.of[g] = {group.columns / 8, x.shape[1], first, s.scale.f32(), s.descale.f32(), s.amax.f32(), s.health, s.count, s.measure_noise};
    first += group.columns;
  }
  return out;
}

dim3 grid_of(const Tensor& x) {
  const std::int64_t wanted = ceil_div(x.count() / 8, std::int64_t(column_threads));
  return {unsigned(wanted < most_blocks ? wanted : most_blocks), 3, 1};
}

template <class T>
__device__ __forceinline__ Eight<float> eight_at(const T* x, std::int64_t at) {
  return Eight<float>::of(load<8>(x, at));
}

__device__ __forceinline__ float greatest_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

template <class T>
__global__ void __launch_bounds__(column_threads) column_maxima_kernel(GroupPlaces places, const T* x, float* maxima) {
  const GroupPlace& p = places.of[blockIdx.y];
  const std::int64_t n = places.rows * p.eights, step = std::int64_t(gridDim.x) * column_threads;
  float top = 0;
  for (std::int64_t i = std::int64_t(blockIdx.x) * column_threads + threadIdx.x; i < n; i += step) {
    Tops<float> tops;
    tops.raise(eight_at(x, p.at(i)));
    top = fmaxf(tops.top(), top);
  }
  top = greatest_of_warp(top);
  if (threadIdx.x % 32 == 0 && top > 0) raise(maxima + blockIdx.y, top);
}

template <class Format, class T>
__global__ void __launch_bounds__(column_threads) encode_columns_kernel(GroupPlaces places, const T* x, std::uint8_t* to) {
  const GroupPlace& p = places.of[blockIdx.y];
  const std::int64_t n = places.rows * p.eights, step = std::int64_t(gridDim.x) * column_threads;
  if (n == 0) return;
  const float scale = __ldg(p.scale);
  const auto scale_of = [scale](int) { return scale; };
  Tally tally;
  float top = 0;
  for (std::int64_t i = std::int64_t(blockIdx.x) * column_threads + threadIdx.x; i < n; i += step) {
    const Eight<float> v = eight_at(x, p.at(i));
    const uint2 codes = encode_eight<Format>(v, scale_of);
    *reinterpret_cast<uint2*>(to + p.at(i)) = codes;
    Tops<float> tops;
    tops.raise(v);
    top = fmaxf(tops.top(), top);
    if (p.health == nullptr) continue;
    count_each<Format>(v, codes, scale_of, tally);
    if (p.noise) measure_noise<Format>({.descale = p.descale}, v, codes, scale_of, tally);
  }
  top = greatest_of_warp(top);
  if (threadIdx.x % 32 == 0 && p.amax != nullptr && top > 0) raise(p.amax, top);
  if (p.health == nullptr) return;
  if (p.count) add_count(&p.health->saturated, tally.saturated), add_count(&p.health->flushed, tally.flushed);
  add_count(&p.health->nonfinite, tally.nonfinite);
  if (p.noise) add_sum(&p.health->signal, tally.signal), add_sum(&p.health->noise, tally.noise);
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  widen_range(p.health, scale, scale);
  atomicAdd(reinterpret_cast<unsigned long long*>(&p.health->values), static_cast<unsigned long long>(n * 8));
}

template <class Format, class T>
__global__ void __launch_bounds__(column_threads) decode_columns_kernel(GroupPlaces places, const std::uint8_t* codes, T* x) {
  const GroupPlace& p = places.of[blockIdx.y];
  const std::int64_t n = places.rows * p.eights, step = std::int64_t(gridDim.x) * column_threads;
  if (n == 0) return;
  const float descale = __ldg(p.descale);
  for (std::int64_t i = std::int64_t(blockIdx.x) * column_threads + threadIdx.x; i < n; i += step) {
    const uint2 eight = *reinterpret_cast<const uint2*>(codes + p.at(i));
    Pack<8> out;
#pragma unroll
    for (int j = 0; j < 8; ++j) out.v[j] = decode_one<Format>(byte_of(eight, j)) * descale;
    store(x, p.at(i), out);
  }
}

// f of the format of codes and the type of values.
template <class F>
void with_types(DType format, DType values, const F& f) {
  dispatch<float, Bf16>(values, "column codes", [&]<class T>() {
    if (format == DType::e5m2) f.template operator()<E5M2, T>();
    else f.template operator()<E4M3, T>();
  });
}

}  // namespace

void column_maxima(Queue queue, const Tensor& x, const ops::ColumnGroups& groups, const Tensor& maxima) {
  dispatch<float, Bf16>(x.dtype, "column codes", [&]<class T>() {
    column_maxima_kernel<T><<<grid_of(x), column_threads, 0, queue>>>(places_of(x, groups), x.as<T>(), maxima.f32());
  });
  launched("column_maxima_kernel");
}

void encode_columns(Queue queue, const Tensor& x, const ops::ColumnGroups& groups, const Tensor& codes) {
  with_types(codes.dtype, x.dtype, [&]<class Format, class T>() {
    encode_columns_kernel<Format, T><<<grid_of(x), column_threads, 0, queue>>>(places_of(x, groups), x.as<T>(), codes.u8());
  });
  launched("encode_columns_kernel");
}

void decode_columns(Queue queue, const Tensor& codes, const ops::ColumnGroups& groups, const Tensor& x) {
  with_types(codes.dtype, x.dtype, [&]<class Format, class T>() {
    decode_columns_kernel<Format, T><<<grid_of(x), column_threads, 0, queue>>>(places_of(x, groups), codes.u8(), x.as<T>());
  });
  launched("decode_columns_kernel");
}

}  // namespace octet::cuda
