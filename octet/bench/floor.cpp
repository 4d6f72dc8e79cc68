#include "octet/bench/floor.hpp"

namespace octet::bench {
namespace {

// The mean rate that oneDNN reaches by itself on the three GEMMs of each of the model's layers.
double cpu_rate(Subject& s) {
  double flops = 0, seconds = 0;
  const auto add = [&](double times, DType result, std::int64_t M, std::int64_t N, std::int64_t K) {
    const double work = times * 2.0 * double(M) * double(N) * double(K);
    flops += work, seconds += work / s.limits.matrix_flops_per_second(DType::bf16, result, M, N, K);
  };
  for (const scaling::Site& site : s.sites.all()) {
    const std::int64_t T = site.head ? s.head_tokens() : s.tokens;
    const double times = site.head ? double(s.tokens) / double(T) : double(s.shape.layers);
    add(times, DType::bf16, T, site.out, site.in), add(times, DType::bf16, T, site.in, site.out),
        add(times, DType::f32, site.out, site.in, T);
  }
  return flops / seconds;
}

}  // namespace

Floor floor_of(Subject& s, const Work& work, const std::vector<Row>& attention) {
  Floor floor;
  if (s.stream.device() == Device::cpu) {
    floor.gemm_seconds = work.gemm_flops / cpu_rate(s);
  } else {
    const double fp8 = work.fp8_flops - work.emulated_flops;
    floor.gemm_seconds =
        fp8 / s.limits.matrix_flops_per_second(DType::e4m3) + (work.gemm_flops - fp8) / s.limits.matrix_flops_per_second(DType::bf16);
  }
  double flops = 0, seconds = 0;
  for (const Row& row : attention)
    if (row.unit == Unit::flops) flops += row.amount, seconds += row.seconds.best;
  floor.attention_seconds = (work.flops - work.gemm_flops) * seconds / flops;
  floor.memory_seconds = work.bytes / s.limits.copy_bytes_per_second();
  return floor;
}

}  // namespace octet::bench
