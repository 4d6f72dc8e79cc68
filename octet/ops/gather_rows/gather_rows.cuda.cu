#include "octet/ops/gather_rows/gather_rows.kernels.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"

namespace octet::cuda {
namespace {

template <class T>
struct Gathered {
  static constexpr int outputs = 1;
  const T* x;
  const std::int32_t* source;
  int cols, choices;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const int choice = source[row];
    if (choice < 0) out[0] = Pack<N>::all(0);
    else out[0] = load<N>(row_of(x, choice / choices, cols), col);
  }
  /// Without a detour through floats.
  __device__ __forceinline__ Eight<T> eight(int row, int col) const {
    const int choice = source[row];
    if (choice < 0) return Eight<T>{};
    return Eight<T>::at(row_of(x, choice / choices, cols) + col);
  }
};

}  // namespace

void gather_rows(Queue queue, const Tensor& x, const ops::ExpertMap& map, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gather_rows", [&]<class T>() {
    const Gathered<T> rows{x.as<T>(), map.source.as<std::int32_t>(), int(x.shape[1]), int(map.choices())};
    fill_sink<T>(queue, y, rows, packs_of_eight(x));
  });
}

}  // namespace octet::cuda
