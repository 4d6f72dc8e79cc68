#include "octet/numerics/philox.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/timer.hpp"

namespace octet::cuda {
namespace {

constexpr std::int64_t side = 8192;
constexpr int warm_up = 20, runs = 60;  // long enough for the clock that heavy work settles at

// Sums of four uniform values, near a normal distribution: zeros, or few distinct values, would let the GPU run faster than on real data.
__device__ float some_value(std::uint64_t seed, std::int64_t i) {
  const RandomWords r = philox(seed, std::uint64_t(i));
  return uniform(r.w[0]) + uniform(r.w[1]) + uniform(r.w[2]) + uniform(r.w[3]) - 2.0f;
}
__global__ void fill_kernel(std::int64_t n, std::uint64_t seed, Bf16* half, std::uint8_t* codes) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = some_value(seed, i);
  if (half != nullptr) half[i] = to_bf16(x);
  else codes[i] = encode<E4M3>(x * 128.0f);
}
__global__ void one_kernel(float* x) { *x = 1.0f; }

Quantized operand(Stream& stream, DType type, std::uint64_t seed) {
  Quantized q{.codes = stream.empty({side, side}, type)};
  Bf16* const half = type == DType::bf16 ? q.codes.bf16() : nullptr;
  fill_kernel<<<unsigned(side * side / 256), 256, 0, stream.queue()>>>(side * side, seed, half, q.codes.u8());
  if (is_fp8(type)) {
    q.descales = stream.empty({1}, DType::f32);
    one_kernel<<<1, 1, 0, stream.queue()>>>(q.descales.f32());
  }
  launched("random operand");
  return q;
}

double rate(Stream& stream, DType type) {
  const Scope scope(stream);
  const Quantized a = operand(stream, type, 1), b = operand(stream, type, 2);
  const Tensor d = stream.empty({side, side}, DType::bf16);
  const auto multiply = [&](int times) {
    for (int i = 0; i < times; ++i) ops::gemm(stream, {.a = a, .b = b, .d = d});
  };
  Timer timer(stream);
  multiply(warm_up);
  timer.start();
  multiply(runs);
  return 2.0 * double(side) * double(side) * double(side) * runs / timer.stop();
}

}  // namespace

ops::GpuGemmLimit measure_gemm_limit() {
  Stream stream(Device::cuda);
  return {.fp8_flops_per_second = rate(stream, DType::e4m3), .bf16_flops_per_second = rate(stream, DType::bf16)};
}

}  // namespace octet::cuda
