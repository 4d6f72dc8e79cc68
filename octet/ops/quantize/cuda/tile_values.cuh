#pragma once

// Only for *.cuda.cu files: values of a tile from a producer. See tile.cuh.

#include "octet/ops/quantize/cuda/eight.cuh"

namespace octet::cuda {

/// Lanes of a row body that walks one pack only: the N values from column `at` on.
template <int N>
struct PackLanes {
  using Value = Pack<N>;
  std::int64_t at;

  template <class F>
  __device__ __forceinline__ void each(std::int64_t, F&& f) const {
    f(at);
  }
  template <class T>
  __device__ __forceinline__ Value load(const T* p, std::int64_t i) const {
    return cuda::load<N>(p, i);
  }
  template <class Place>
  __device__ __forceinline__ void store(Place place, std::int64_t, const Value& v) const {
    *place.first = v;
  }
};

/// The destination of a row body's stores: registers. Stores half a row further go to `second`.
template <int N>
struct Kept {
  Pack<N>*first, *second = nullptr;
  __device__ __forceinline__ Kept operator+(std::int64_t) const { return {second}; }
};

/// Where a row of a matrix of `cols` columns begins.
template <class T>
__device__ __forceinline__ T* row_of(T* matrix, int row, int cols) {
  return matrix + std::int64_t(row) * cols;
}

/// A producer of values in memory, of T, rounded to the sink's type.
template <class From, class T>
struct Stored {
  static constexpr int outputs = 1;
  const From* values;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    out[0] = load<N>(row_of(values, row, cols), col);
  }
  /// Without a detour through floats.
  __device__ __forceinline__ Eight<T> eight(int row, int col) const requires(std::is_same_v<From, T>) {
    return Eight<T>::at(row_of(values, row, cols) + col);
  }
};

template <class Make>
inline constexpr bool is_stored = false;
template <class From, class T>
inline constexpr bool is_stored<Stored<From, T>> = true;

/// Eight values of each output from column `col` on, rounded to T.
template <class T, class Make>
__device__ __forceinline__ void make_eight(const Make& make, int row, int col, Eight<T> (&v)[Make::outputs]) {
  if constexpr (requires { make.eight(row, col); }) {
    v[0] = make.eight(row, col);
  } else {
    Pack<8> out[Make::outputs];
    make.template make<8>(row, col, out);
#pragma unroll
    for (int k = 0; k < Make::outputs; ++k) v[k] = Eight<T>::of(out[k]);
  }
}

}  // namespace octet::cuda
