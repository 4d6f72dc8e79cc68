#include "octet/ops/quantize/cuda/coded.cuh"
#include "octet/ops/weighted_swiglu/limit.cuh"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

// Tiles of dx are made pack by pack, so the sum of a row's weight comes in two steps: eight columns here, all of them in a kernel of its
// own.

namespace octet::cuda {

// For weighted_swiglu.math.hpp.
template <int N>
__device__ __forceinline__ Pack<N> unless_above(const Pack<N>& d, const Pack<N>& x, const Pack<N>& most) {
  Pack<N> p;
#pragma unroll
  for (int i = 0; i < N; ++i) p.v[i] = x.v[i] > most.v[i] ? 0.0f : d.v[i];
  return p;
}
template <int N>
__device__ __forceinline__ Pack<N> unless_below(const Pack<N>& d, const Pack<N>& x, const Pack<N>& least) {
  Pack<N> p;
#pragma unroll
  for (int i = 0; i < N; ++i) p.v[i] = x.v[i] < least.v[i] ? 0.0f : d.v[i];
  return p;
}

namespace {

// The inputs of both producers, and the place of the sums of eight columns.
template <class T, class Rows, class Limit>
struct Inputs {
  const T* dy;
  Rows x;
  const float* w;
  const std::int32_t* source;
  int cols, parts_of_row;
  Limit limit;
  float* parts;

  /// Gradients of the gate and of `up`; products to `sum`. Zeros for a row without a token.
  template <int N>
  __device__ __forceinline__ void gradients(int row, int col, Pack<N>& gate, Pack<N>& up, Pack<N>& sum) const {
    const int choice = source[row];
    sum = Pack<N>::all(0);
    if (choice < 0 && branches_at_padding<Rows, Limit>) {
      gate = up = Pack<N>::all(0);
      return;
    }
    ops::weighted_swiglu_backward_row<Limit::is_any>(typename Rows::template Lanes<N>{col}, cols, limit(), w[max(choice, 0)],
                                                     row_of(dy, row, cols), x(row), Kept<N>{&gate, &up}, sum);
    if (choice < 0) gate = up = sum = Pack<N>::all(0);
  }
  __device__ __forceinline__ void put(int row, int col, float sum) const { row_of(parts, row, parts_of_row)[col / 8] = sum; }
};

/// Gradients of the gate (first output) and of `up`, which are as far apart as x's halves.
template <class T, class Rows, class Limit>
struct WeightedHalves {
  static constexpr int outputs = 2;
  Inputs<T, Rows, Limit> in;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[2]) const {
    Pack<N> sum;
    in.template gradients<N>(row, col, out[0], out[1], sum);
    in.put(row, col, sum_of(sum));
  }
};

/// The same where a half is not made of whole tiles: each half on its own.
template <class T, class Rows>
struct WeightedHalf {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs, rare = true;
  Inputs<T, Rows, AnyLimit> in;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const bool gate = col < in.cols;
    Pack<N> halves[2], sum;
    in.template gradients<N>(row, gate ? col : col - in.cols, halves[0], halves[1], sum);
#pragma unroll
    for (int i = 0; i < N; ++i) out[0].v[i] = gate ? halves[0].v[i] : halves[1].v[i];
    if (!gate || col % 8 != 0) return;
    float all = sum_of(sum);
    if constexpr (N == 1) {
#pragma unroll 1
      for (int c = col + 1; c < col + 8 && c < in.cols; ++c) {
        in.template gradients<1>(row, c, halves[0], halves[1], sum);
        all += sum.v[0];
      }
    }
    in.put(row, col, all);
  }
};

constexpr int threads = 256, rows_a_block = threads / 32;

// dw[source[r]] = the sum of row r. A warp for each row.
__global__ void __launch_bounds__(threads)
    sum_rows_kernel(std::int64_t rows, std::int64_t cols, const float* parts, const std::int32_t* source, float* dw) {
  const std::int64_t r = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  if (r >= rows || source[r] < 0) return;
  float sum = 0;
  for (std::int64_t c = threadIdx.x % 32; c < cols; c += 32) sum += parts[r * cols + c];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) dw[source[r]] = sum;
}

template <class T>
void backward(Queue queue, const ops::WeightedSwigluBackward& a, const ops::Sink& dx, const Tensor& parts) {
  with_rows<T>(a.x, [&]<class Rows>(const Rows& rows, bool aligned_rows) {
    const bool aligned = packs_of_eight(a.dy) && aligned_rows;
    const auto inputs = [&]<class Limit>(Limit limit) {
      return Inputs<T, Rows, Limit>{a.dy.as<T>(),        rows,  a.w.f32(),  a.map.source.as<std::int32_t>(), int(a.dy.shape[1]),
                                    int(parts.shape[1]), limit, parts.f32()};
    };
    if constexpr (sizeof(T) == 2) {  // of f32, two tiles are more than a thread has registers for
      if (aligned && splits_into_tiles(dx) && has_aligned_packs(dx))
        return with_limit<T>(
            a.limit, [&]<class Limit>(Limit limit) { fill_sink<T>(queue, dx, WeightedHalves<T, Rows, Limit>{inputs(limit)}, true); });
    }
    fill_sink<T>(queue, dx, WeightedHalf<T, Rows>{inputs(any_limit(a.limit))}, aligned);
  });
}

}  // namespace

void weighted_swiglu_backward(Queue queue, const ops::WeightedSwigluBackward& a, const ops::Sink& dx, const Tensor& parts) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "weighted_swiglu", [&]<class T>() { backward<T>(queue, a, dx, parts); });
  const std::int64_t rows = parts.shape[0];
  if (rows == 0) return;
  sum_rows_kernel<<<unsigned(ceil_div(rows, rows_a_block)), threads, 0, queue>>>(rows, parts.shape[1], parts.f32(),
                                                                                 a.map.source.as<std::int32_t>(), a.dw.f32());
  launched("sum_rows");
}

}  // namespace octet::cuda
