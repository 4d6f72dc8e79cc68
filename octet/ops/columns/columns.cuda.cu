#include <bit>

#include "octet/ops/columns/columns.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr unsigned threads = 256, rows_of_thread = 4, most_blocks_down = 65535;

// Rows lie `from_row` and `to_row` packs apart. A thread copies a pack of four rows at once, of each 4 x blockDim.y rows of its block.
template <class Pack>
__global__ void __launch_bounds__(threads)
    copy_columns_kernel(std::int64_t rows, std::int64_t packs, const Pack* from, std::int64_t from_row, Pack* to, std::int64_t to_row) {
  const std::int64_t c = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= packs) return;
  const std::int64_t all = std::int64_t(gridDim.y) * blockDim.y;
  for (std::int64_t t = std::int64_t(blockIdx.y) * blockDim.y + threadIdx.y; t < rows; t += rows_of_thread * all) {
    Pack held[rows_of_thread];
#pragma unroll
    for (unsigned i = 0; i < rows_of_thread; ++i)
      if (t + i * all < rows) held[i] = from[(t + i * all) * from_row + c];
#pragma unroll
    for (unsigned i = 0; i < rows_of_thread; ++i)
      if (t + i * all < rows) to[(t + i * all) * to_row + c] = held[i];
  }
}

// The ranges in bytes.
struct Ranges {
  const std::byte* from;
  std::byte* to;
  std::size_t rows, columns, from_row, to_row;

  explicit Ranges(const ops::CopyColumns& a) {
    const std::size_t size = size_of(a.from.dtype);
    from = a.from.as<std::byte>() + std::size_t(a.from_column) * size, to = a.to.as<std::byte>() + std::size_t(a.to_column) * size;
    rows = std::size_t(a.from.shape[0]), columns = std::size_t(a.columns) * size;
    from_row = std::size_t(a.from.shape[1]) * size, to_row = std::size_t(a.to.shape[1]) * size;
  }
  // All begin and end at multiples of it: a power of two.
  std::size_t alignment() const {
    const std::size_t all = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to) | columns | from_row | to_row;
    return all & (~all + 1);
  }
};

template <class Pack>
void copy(Queue queue, const Ranges& r) {
  constexpr std::size_t size = sizeof(Pack);
  const std::size_t packs = r.columns / size;
  const unsigned across = packs < threads ? std::bit_ceil(unsigned(packs)) : threads, down = threads / across;
  const std::size_t wanted = ceil_div(r.rows, std::size_t(down * rows_of_thread));
  const dim3 grid(unsigned(ceil_div(packs, std::size_t(across))), wanted < most_blocks_down ? unsigned(wanted) : most_blocks_down);
  copy_columns_kernel<<<grid, dim3(across, down), 0, queue>>>(std::int64_t(r.rows), std::int64_t(packs),
                                                              reinterpret_cast<const Pack*>(r.from), std::int64_t(r.from_row / size),
                                                              reinterpret_cast<Pack*>(r.to), std::int64_t(r.to_row / size));
  launched("copy_columns");
}

}  // namespace

void copy_columns(Queue queue, const ops::CopyColumns& a) {
  const Ranges r(a);
  if (r.rows == 0 || r.columns == 0) return;
  switch (r.alignment()) {
    case 1: return copy<std::uint8_t>(queue, r);
    case 2: return copy<std::uint16_t>(queue, r);
    case 4: return copy<std::uint32_t>(queue, r);
    case 8: return copy<uint2>(queue, r);
    default: return copy<uint4>(queue, r);
  }
}

}  // namespace octet::cuda
