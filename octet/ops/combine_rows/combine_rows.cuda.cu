#include "octet/ops/combine_rows/combine_rows.kernels.hpp"
#include "octet/ops/combine_rows/combine_rows.math.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {
namespace {

constexpr int threads = 256, tokens_a_block = threads / 32;

// A warp for each token.
template <class T, int N>
__global__ void __launch_bounds__(threads)
    combine_rows_kernel(std::int64_t tokens, std::int64_t cols, std::int64_t choices, const T* x, const std::int32_t* row, T* y, bool add) {
  const std::int64_t t = std::int64_t(blockIdx.x) * tokens_a_block + threadIdx.x / 32;
  if (t < tokens) ops::combine_row(RowLanes<32, N>{}, cols, choices, x, row + t * choices, y + t * cols, add);
}

}  // namespace

void combine_rows(Queue queue, const Tensor& x, const ops::ExpertMap& map, const Tensor& y, bool add) {
  const std::int64_t tokens = y.shape[0], cols = y.shape[1];
  if (tokens == 0 || cols == 0) return;
  const auto addresses = reinterpret_cast<std::uintptr_t>(x.data) | reinterpret_cast<std::uintptr_t>(y.data);
  dispatch<float, Bf16, Fp16>(y.dtype, "combine_rows", [&]<class T>() {
    with_pack<T>(addresses % 16 == 0 ? cols : 1, [&]<int N>() {
      combine_rows_kernel<T, N><<<unsigned(ceil_div(tokens, tokens_a_block)), threads, 0, queue>>>(
          tokens, cols, map.choices(), x.as<T>(), map.row.as<std::int32_t>(), y.as<T>(), add);
    });
  });
  launched("combine_rows");
}

}  // namespace octet::cuda
