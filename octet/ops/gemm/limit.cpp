#include <dnnl.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "octet/numerics/philox.hpp"
#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/ops/gemm/multiply.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t side = 1024;

// Values in (-1, 1): zeros would let the processor run faster than it can on real data.
template <class T>
std::vector<T> random_values(std::uint64_t seed) {
  std::vector<T> out(side * side);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float x = 2 * uniform(philox(seed, i).w[0]) - 1;
    if constexpr (sizeof(T) == 2) out[i] = to_bf16(x);
    else out[i] = x;
  }
  return out;
}

// Measuring time of the GEMMs' type, and of the other one, which is only displayed.
constexpr std::chrono::milliseconds steady{200}, brief{20};

// Best rate of several runs after a warm-up: long enough that a busy moment of the machine is not taken for its limit.
template <class T>
double rate(int runs, std::chrono::milliseconds least) {
  const auto a = random_values<T>(1), b = random_values<T>(2);
  std::vector<float> d(side * side);
  const Multiplication form{.M = side, .N = side, .K = side, .type = dtype_of<T>, .result = DType::f32};
  const auto once = [&] {
    const auto start = std::chrono::steady_clock::now();
    multiply(form, a.data(), b.data(), d.data(), 1, nullptr);
    return 2.0 * side * side * side / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double best = once();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; runs > 0 && (i < runs || std::chrono::steady_clock::now() - start < least); ++i) best = std::max(best, once());
  return best;
}

// Without instructions for BF16, oneDNN emulates it at a fraction of the rate: measured once, for the record.
GemmLimit measure() {
  cpu::require_threads();
  GemmLimit limit{.compute = gemm_compute()};
  const bool native = limit.compute == DType::bf16;
  limit.f32_flops_per_second = rate<float>(native ? 1 : 4, native ? brief : steady);
  try {
    limit.bf16_flops_per_second = rate<Bf16>(native ? 4 : 0, steady);
  } catch (const DeviceError&) {  // no BF16 kernel on this machine
  }
  limit.flops_per_second = native ? limit.bf16_flops_per_second : limit.f32_flops_per_second;
  return limit;
}

}  // namespace

DType gemm_compute() {
  // Each of these constants has the bits of those that it includes.
  const auto isa = unsigned(dnnl_get_effective_cpu_isa());
  return (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16 ? DType::bf16 : DType::f32;
}

const GemmLimit& measured_gemm_limit() {
  static const GemmLimit limit = measure();
  return limit;
}

const GpuGemmLimit& measured_gpu_gemm_limit() {
#ifdef OCTET_HAS_CUDA
  static const GpuGemmLimit limit = cuda::measure_gemm_limit();
  return limit;
#else
  cuda::not_built();
#endif
}

std::string gemm_library(Device device) {
#ifdef OCTET_HAS_CUDA
  if (device == Device::cuda) return cuda::gemm_library();
#else
  if (device == Device::cuda) cuda::not_built();
#endif
  const dnnl_version_t* v = dnnl_version();
  return format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace octet::ops
