#include "octet/ops/gather_codes/gather_codes.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {
namespace {

constexpr int threads = 256, rows_a_block = threads / 32;

__device__ __forceinline__ std::int64_t token_of(const std::int32_t* source, std::int64_t row, std::int64_t choices) {
  const std::int32_t choice = source[row];
  return choice < 0 ? -1 : choice / choices;
}

// A warp for each row of `packs` packs.
template <class Pack>
__global__ void __launch_bounds__(threads) gather_codes_kernel(std::int64_t rows, std::int64_t packs, std::int64_t choices,
                                                               const Pack* from, const std::int32_t* source, Pack* to) {
  const std::int64_t r = std::int64_t(blockIdx.x) * rows_a_block + threadIdx.x / 32;
  if (r >= rows) return;
  const std::int64_t t = token_of(source, r, choices);
  for (std::int64_t i = threadIdx.x % 32; i < packs; i += 32) to[r * packs + i] = t < 0 ? Pack{} : from[t * packs + i];
}

// The order of a table of descales: block b of row r is at r * row + b * block.
struct DescaleOrder {
  std::int64_t row, block;
};

// A thread for each descale, in the order of `to`, whose padding is that of a row of zeros.
template <class T>
__global__ void __launch_bounds__(threads)
    gather_descales_kernel(std::int64_t n, std::int64_t blocks, std::int64_t rows, std::int64_t choices, const T* from,
                           DescaleOrder of_from, const std::int32_t* source, T* to, DescaleOrder of_to, T of_zeros) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= n) return;
  const std::int64_t r = of_to.block == 1 ? i / blocks : i % of_to.block, b = of_to.block == 1 ? i % blocks : i / of_to.block;
  const std::int64_t t = r < rows ? token_of(source, r, choices) : -1;
  to[i] = t < 0 ? of_zeros : from[t * of_from.row + b * of_from.block];
}

DescaleOrder order_of(const Tensor& descales) {
  if (descales.shape.rank == 1) return {1, 1};
  if (descales.dtype == DType::e8m0) return {descales.shape[1], 1};
  return {1, descales.shape[1]};
}

template <class T>
void gather_descales(Queue queue, const Quantized& from, const ops::ExpertMap& map, const Quantized& to, T of_zeros) {
  const Tensor& d = to.descales;
  const std::int64_t n = d.count();
  if (n == 0) return;
  const std::int64_t blocks = d.shape.rank == 1 ? 1 : d.shape[d.dtype == DType::e8m0 ? 1 : 0];
  gather_descales_kernel<T><<<unsigned(ceil_div(n, std::int64_t(threads))), threads, 0, queue>>>(
      n, blocks, map.rows(), map.choices(), from.descales.as<T>(), order_of(from.descales), map.source.as<std::int32_t>(), d.as<T>(),
      order_of(d), of_zeros);
  launched("gather_descales");
}

template <class Pack>
void gather_packs(Queue queue, const Quantized& from, const ops::ExpertMap& map, const Quantized& to, std::int64_t bytes) {
  const unsigned blocks = unsigned(ceil_div(map.rows(), std::int64_t(rows_a_block)));
  gather_codes_kernel<Pack><<<blocks, threads, 0, queue>>>(map.rows(), bytes / std::int64_t(sizeof(Pack)), map.choices(),
                                                           from.codes.as<Pack>(), map.source.as<std::int32_t>(), to.codes.as<Pack>());
  launched("gather_codes");
}

}  // namespace

void gather_codes(Queue queue, const Quantized& from, const ops::ExpertMap& map, const Quantized& to) {
  const std::int64_t bytes = to.codes.shape[1] * std::int64_t(size_of(to.codes.dtype));
  const auto addresses = reinterpret_cast<std::uintptr_t>(from.codes.data) | reinterpret_cast<std::uintptr_t>(to.codes.data);
  if (map.rows() > 0 && bytes > 0) {
    if (bytes % 16 == 0 && addresses % 16 == 0) gather_packs<uint4>(queue, from, map, to, bytes);
    else gather_packs<std::uint8_t>(queue, from, map, to, bytes);
  }
  if (!to.descales || to.block.whole_tensor()) return;
  if (to.descales.dtype == DType::e8m0) gather_descales<std::uint8_t>(queue, from, map, to, 0);
  else gather_descales<float>(queue, from, map, to, 1);
}

}  // namespace octet::cuda
