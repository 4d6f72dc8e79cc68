#include "octet/bench/limits.hpp"

#include <unistd.h>

#include <algorithm>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/gemm/multiply.hpp"
#include "octet/machine/limits.hpp"

namespace octet::bench {
namespace {

constexpr double mib = 1 << 20;

// The library's least seconds over the orders in which operands may be stored.
double multiply_seconds(Stream& stream, const RandomData& random, const Effort& effort, ops::Multiplication form) {
  const std::vector<Timing> orders = measure_ways(stream, effort, [&](Stream& s) {
    const Tensor a = random.values(s, {form.M, form.K}, form.type), b = random.values(s, {form.N, form.K}, form.type);
    const Tensor d = random.values(s, {form.M, form.N}, form.result);
    std::vector<Launch> out;
    for (const int order : {0, 1, 2, 3}) {
      form.a_transposed = (order & 2) != 0, form.b_transposed = (order & 1) != 0;
      out.push_back([form, a, b, d] { ops::multiply(form, a.data, b.data, d.data, 1, nullptr); });
    }
    return out;
  });
  return std::ranges::min(orders, {}, &Timing::best).best;
}

}  // namespace

double beyond_cache_bytes(Device device) {
  if (device == Device::cuda) return 256 * mib;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp(4.0 * double(std::max(cache, 0L)), 64 * mib, 512 * mib);
}

double Limits::copy_bytes_per_second() {
  if (copy_ > 0) return copy_;
  const double bytes = stream_.device() == Device::cpu ? effort_.working_set_bytes : std::max(effort_.working_set_bytes, 1024 * mib);
  return copy_ = octet::machine::copy_bytes_per_second(stream_, std::int64_t(bytes), std::clamp(effort_.repeats, 7, 15));
}

double Limits::matrix_flops_per_second(DType operands) const {
  if (stream_.device() != Device::cpu) {
    const ops::GpuGemmLimit& limit = ops::measured_gpu_gemm_limit();
    return is_fp8(operands) ? limit.fp8_flops_per_second : limit.bf16_flops_per_second;
  }
  const ops::GemmLimit& limit = ops::measured_gemm_limit();
  return operands == DType::f32 ? limit.f32_flops_per_second : limit.flops_per_second;
}

double Limits::matrix_flops_per_second(DType operands, DType result, std::int64_t M, std::int64_t N, std::int64_t K) {
  if (stream_.device() != Device::cpu) return matrix_flops_per_second(operands);
  const DType type = operands == DType::f32 ? DType::f32 : stream_.target().gemm_compute;
  double& rate = known_[{type, result, M, N, K}];
  if (rate > 0) return rate;
  Effort effort = effort_;
  effort.repeats = std::clamp(effort.repeats, 3, 5);
  const ops::Multiplication form{.M = M, .N = N, .K = K, .type = type, .result = type == DType::f32 ? DType::f32 : result};
  return rate = 2.0 * double(M) * double(N) * double(K) / multiply_seconds(stream_, random_, effort, form);
}

}  // namespace octet::bench
