#include "octet/ops/quantize/quantize.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/pack.cuh"

namespace octet::cuda {
namespace {

template <class From, int N>
__device__ __forceinline__ Pack<N> load_values(const void* p, std::int64_t at) {
  if constexpr (!std::is_same_v<From, E4M3> && !std::is_same_v<From, E5M2>) {
    return load<N>(static_cast<const From*>(p), at);
  } else {
    alignas(8) std::uint8_t codes[N];
    const std::uint8_t* const from = static_cast<const std::uint8_t*>(p) + at;
    if constexpr (N == 8) *reinterpret_cast<uint2*>(codes) = *reinterpret_cast<const uint2*>(from);
    else codes[0] = *from;
    Pack<N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = decode<From>(codes[i]);
    return out;
  }
}

/// How the descale of a value is found; no descales: 1.
struct Descales {
  const void* at = nullptr;
  bool e8m0 = false;
  std::int64_t block_rows = 1, block_cols = 1, row_stride = 0, col_stride = 0;

  __device__ __forceinline__ float operator()(std::int64_t row, std::int64_t col) const {
    if (at == nullptr) return 1.0f;
    const std::int64_t i = row / block_rows * row_stride + col / block_cols * col_stride;
    return e8m0 ? decode_e8m0(static_cast<const std::uint8_t*>(at)[i]) : static_cast<const float*>(at)[i];
  }
};

template <class From, class Out, int N>
__global__ void decode_kernel(std::int64_t rows, std::int64_t cols, const void* from, Descales descales, Out* out) {
  const std::int64_t col = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (col >= cols) return;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y)
    store(out, row * cols + col, load_values<From, N>(from, row * cols + col) * descales(row, col));
}

template <class From, class Out>
void decode_to(Queue queue, const Quantized& q, bool descaled, const Tensor& out) {
  std::int64_t rows = q.codes.shape[0], cols = q.codes.shape[1];
  Descales d;
  if (descaled && q.descales) {
    const auto stride = descale_stride(q.block, q.descales.dtype, rows, cols);
    d = {q.descales.data,
         q.descales.dtype == DType::e8m0,
         q.block.rows ? q.block.rows : rows,
         q.block.cols ? q.block.cols : cols,
         stride.row_block,
         stride.col_block};
  } else {
    cols *= rows, rows = 1;
  }
  constexpr int threads = 128;
  const auto run = [&]<int N>() {
    const dim3 grid(unsigned(ceil_div(cols, threads * N)), unsigned(rows < 65535 ? rows : 65535));
    decode_kernel<From, Out, N><<<grid, threads, 0, queue>>>(rows, cols, q.codes.data, d, out.as<Out>());
  };
  const bool aligned = (reinterpret_cast<std::uintptr_t>(q.codes.data) | reinterpret_cast<std::uintptr_t>(out.data)) % 16 == 0;
  if (cols % 8 == 0 && aligned) run.template operator()<8>();
  else run.template operator()<1>();
  launched("decode_kernel");
}

__global__ void count_nonfinite_kernel(const ops::QuantizeHealth* table, std::int64_t n, std::int64_t* total) {
  long long sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += 32) sum += table[i].nonfinite;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace

void decode_operand(Queue queue, const Quantized& q, bool descaled, const Tensor& out) {
  if (out.count() == 0) return;
  if (out.dtype == DType::f16)  // codes never become FP16
    return dispatch<float, Bf16, Fp16>(q.codes.dtype, "decode", [&]<class From>() { decode_to<From, Fp16>(queue, q, descaled, out); });
  dispatch<E4M3, E5M2, Bf16, Fp16, float>(q.codes.dtype, "decode", [&]<class From>() {
    dispatch<float, Bf16>(out.dtype, "decode", [&]<class Out>() { decode_to<From, Out>(queue, q, descaled, out); });
  });
}

void count_nonfinite(Queue queue, const ops::QuantizeHealth* table, std::int64_t n, std::int64_t* total) {
  count_nonfinite_kernel<<<1, 32, 0, queue>>>(table, n, total);
  launched("count_nonfinite");
}

}  // namespace octet::cuda
