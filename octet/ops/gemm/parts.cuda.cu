#include "octet/numerics/bf16_parts.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256;

// Part i of a row begins at row * row_step + i * part_step.
struct PartOrder {
  std::int64_t row_step, part_step;
  int count, part[6];
};
// The six largest of the nine products of parts.
constexpr int of_left[6] = {0, 0, 1, 0, 1, 2}, of_right[6] = {0, 1, 0, 2, 1, 0};

// N neighbouring values per thread.
template <int N>
__global__ void __launch_bounds__(threads)
    split_kernel(std::int64_t packs, std::int64_t cols, const float* from, Bf16* to, PartOrder order) {
  const std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * N;
  if (i >= packs * N) return;
  const std::int64_t row = i / cols;
  struct alignas(sizeof(float) * N) Values {
    float v[N];
  } x = *reinterpret_cast<const Values*>(from + i);
  Bf16Parts parts[N];
#pragma unroll
  for (int j = 0; j < N; ++j) parts[j] = bf16_parts(x.v[j]);
  Bf16* const at = to + row * order.row_step + (i - row * cols);
  for (int p = 0; p < order.count; ++p) {
    struct alignas(sizeof(Bf16) * N) Part {
      Bf16 v[N];
    } part;
    const int which = order.part[p];
#pragma unroll
    for (int j = 0; j < N; ++j) part.v[j] = which == 0 ? parts[j].part[0] : which == 1 ? parts[j].part[1] : parts[j].part[2];
    *reinterpret_cast<Part*>(at + p * order.part_step) = part;
  }
}

void split(Queue queue, const Tensor& from, const Tensor& to, const PartOrder& order) {
  const std::int64_t n = from.count(), cols = from.shape[1];
  if (n == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(from.data) % 16 == 0 && cols % 4 == 0;
  const auto blocks = [](std::int64_t packs) { return unsigned(ceil_div(packs, threads)); };
  if (aligned) split_kernel<4><<<blocks(n / 4), threads, 0, queue>>>(n / 4, cols, from.f32(), to.as<Bf16>(), order);
  else split_kernel<1><<<blocks(n), threads, 0, queue>>>(n, cols, from.f32(), to.as<Bf16>(), order);
  launched("split_f32");
}

}  // namespace

void split_f32(Queue queue, const Tensor& from, const Tensor& to) { split(queue, from, to, {from.shape[1], from.count(), 3, {0, 1, 2}}); }

void split_f32_along_k(Queue queue, const Quantized& from, bool left, const Tensor& to) {
  const std::int64_t cols = from.codes.shape[1];
  PartOrder order = from.transposed ? PartOrder{cols, from.codes.count(), 6, {}} : PartOrder{6 * cols, cols, 6, {}};
  for (int i = 0; i < 6; ++i) order.part[i] = (left ? of_left : of_right)[i];
  split(queue, from.codes, to, order);
}

}  // namespace octet::cuda
