#include "octet/machine/limits.hpp"

#include <algorithm>
#include <cstring>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/tensor/timer.hpp"

namespace octet::machine {
namespace {

void copy_by_all_threads(const Tensor& from, const Tensor& to) {
  constexpr std::int64_t piece = 1 << 20;
  const std::int64_t bytes = std::int64_t(from.bytes());
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t begin = 0; begin < bytes; begin += piece)
    std::memcpy(to.as<std::byte>() + begin, from.as<std::byte>() + begin, std::size_t(std::min(piece, bytes - begin)));
}

// Best time of one copy over runs of `times` copies, after a run that warms up.
template <class F>
double best_seconds(Stream& stream, int repeats, int times, const F& f) {
  Timer timer(stream);
  double best = 1e9;
  for (int r = 0; r <= repeats; ++r) {
    timer.start();
    for (int i = 0; i < times; ++i) f();
    const double seconds = timer.stop() / times;
    if (r > 0) best = std::min(best, seconds);
  }
  return best;
}

MachineLimits measure(Device device) {
  Stream stream(device);
  if (device == Device::cuda) {
    const ops::GpuGemmLimit& gemm = ops::measured_gpu_gemm_limit();
    return {gemm.fp8_flops_per_second, gemm.bf16_flops_per_second, copy_bytes_per_second(stream, std::int64_t(256) << 20, 5)};
  }
  const double flops = ops::measured_gemm_limit().flops_per_second;
  return {flops, flops, copy_bytes_per_second(stream, std::int64_t(64) << 20, 5)};
}

}  // namespace

double copy_bytes_per_second(Stream& stream, std::int64_t bytes, int repeats) {
  const Scope scope(stream);
  const Tensor from = stream.empty({bytes}, DType::u8), to = stream.empty({bytes}, DType::u8);
  const bool cpu = stream.device() == Device::cpu;
  if (cpu) std::memset(from.data, 1, from.bytes());  // untouched pages of zeros would all map to one page
  double best = best_seconds(stream, repeats, cpu ? 1 : 10, [&] { copy(stream, from, to); });
  if (cpu) best = std::min(best, best_seconds(stream, repeats, 1, [&] { copy_by_all_threads(from, to); }));
  return 2.0 * double(bytes) / best;
}

const MachineLimits& machine_limits(Device device) {
  if (device == Device::cuda) {
    static const MachineLimits gpu = measure(device);
    return gpu;
  }
  static const MachineLimits cpu = measure(Device::cpu);
  return cpu;
}

double least_seconds(const Work& w, const MachineLimits& limits) {
  const double fp8 = w.fp8_flops - w.emulated_flops;
  return fp8 / limits.fp8_flops_per_second + (w.flops - fp8) / limits.flops_per_second + w.bytes / limits.bytes_per_second;
}

}  // namespace octet::machine
