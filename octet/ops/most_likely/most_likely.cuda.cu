#include "octet/numerics/order.hpp"
#include "octet/ops/most_likely/most_likely.kernels.hpp"
#include "octet/tensor/cuda/early.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 1024;

// Larger for a larger value, then for a lower column.
__device__ __forceinline__ unsigned long long key_of(std::int32_t value, int column) {
  return static_cast<unsigned long long>(unsigned(value) ^ 0x80000000u) << 32 | unsigned(~column);
}
__device__ __forceinline__ unsigned long long warp_max_key(unsigned long long key) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) key = max(__shfl_xor_sync(~0u, key, step), key);
  return key;
}

// A block per row. A thread sees its columns in order, so the first of its largest stays.
template <class T, int N>
__global__ void __launch_bounds__(threads) most_likely_kernel(const T* logits, std::int64_t columns, int vocabulary, std::int32_t* ids) {
  __shared__ unsigned long long keys[threads / 32];
  let_later_work_begin();
  wait_for_earlier_work();
  const int thread = int(threadIdx.x);
  const T* const row = logits + std::int64_t(blockIdx.x) * columns;
  OrderedRange seen;
  int column = 0;
#pragma unroll 4
  for (int first = thread * N; first < vocabulary; first += threads * N) {
    const Pack<N> p = load<N>(row, first);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (first + i >= vocabulary) continue;
      const std::int32_t x = ordered(p.v[i]);
      if (x > seen.most) column = first + i;
      seen.add(x);
    }
  }
  const unsigned long long own = warp_max_key(key_of(seen.most, column));
  if (thread % 32 == 0) keys[thread / 32] = own;
  const bool finite = __syncthreads_and(seen.is_finite());
  if (thread >= 32) return;
  const unsigned long long most = warp_max_key(keys[thread]);
  if (thread == 0) ids[blockIdx.x] = finite ? int(~unsigned(most)) : -1;
}

}  // namespace

void most_likely(Queue queue, const ops::MostLikely& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  if (rows == 0) return;
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "most_likely", [&]<class T>() {
    const bool aligned = reinterpret_cast<std::uintptr_t>(a.logits.data) % 16 == 0;
    with_pack<T>(aligned ? columns : 1, [&]<int N>() {
      const Blocks blocks{.grid = dim3(unsigned(rows)), .threads = threads, .early = rows <= early_rows};
      launch_early("most_likely_kernel", most_likely_kernel<T, N>, blocks, queue, a.logits.as<T>(), columns, int(a.vocabulary),
                   a.ids.as<std::int32_t>());
    });
  });
}

}  // namespace octet::cuda
