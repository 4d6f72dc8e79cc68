#include "octet/ops/gather_rows/gather_rows.kernels.hpp"
#include "octet/ops/quantize/cuda/tile.cuh"

namespace octet::cuda {
namespace {

/// n / divisor of 0 <= n < 2^31, without a division.
struct Quotient {
  unsigned divisor;
  unsigned long long factor;  // 2^33 / divisor, rounded up

  explicit Quotient(std::int64_t by) : divisor(unsigned(by)), factor(((1ull << 33) + divisor - 1) / divisor) {}
  __device__ __forceinline__ int of(int n) const {
    const unsigned q = unsigned(unsigned(n) * factor >> 33);  // at most one too many
    return int(q * divisor > unsigned(n) ? q - 1 : q);
  }
};

// A row without a token reads the first one and drops it, so that no load waits for a branch.
template <class T>
struct Gathered {
  static constexpr int outputs = 1;
  const T* x;
  const std::int32_t* source;
  int cols;
  Quotient token;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const int choice = source[row];
    out[0] = load<N>(row_of(x, token.of(max(choice, 0)), cols), col);
    if (choice < 0) out[0] = Pack<N>::all(0);
  }
  /// Without a detour through floats.
  __device__ __forceinline__ Eight<T> eight(int row, int col) const {
    const int choice = source[row];
    const Eight<T> e = Eight<T>::at(row_of(x, token.of(max(choice, 0)), cols) + col);
    return choice < 0 ? Eight<T>{} : e;
  }
};

}  // namespace

void gather_rows(Queue queue, const Tensor& x, const ops::ExpertMap& map, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "gather_rows", [&]<class T>() {
    const Gathered<T> rows{x.as<T>(), map.source.as<std::int32_t>(), int(x.shape[1]), Quotient(map.choices())};
    fill_sink<T>(queue, y, rows, packs_of_eight(x));
  });
}

}  // namespace octet::cuda
