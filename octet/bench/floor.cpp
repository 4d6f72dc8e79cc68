#include "octet/bench/floor.hpp"

namespace octet::bench {
namespace {

double values(const PlanRow& row) { return double(row.out) * double(row.in); }

// What part of all GEMM operations reads 8-bit operands. The head's are known; the blocks' are shared out by the layers' sizes, so that
// recomputed ones count.
double fp8_flops(const Subject& s, const Work& work, const std::vector<PlanRow>& plan, double step_tokens) {
  double head = 0, head_fp8 = 0, blocks = 0, blocks_fp8 = 0;
  for (const PlanRow& row : plan) {
    const bool fp8 = row.precision != to_text(DType::bf16) && row.precision != to_text(DType::f32);
    const bool is_head = row.path == s.sites.head.path;
    (is_head ? head : blocks) += values(row);
    if (fp8) (is_head ? head_fp8 : blocks_fp8) += values(row);
  }
  const double of_head = 6 * step_tokens;
  return of_head * head_fp8 + (blocks > 0 ? (work.gemm_flops - of_head * head) * blocks_fp8 / blocks : 0.0);
}

// The mean rate that oneDNN reaches by itself on the three GEMMs of each of the model's layers.
double cpu_rate(Subject& s) {
  double flops = 0, seconds = 0;
  const auto add = [&](double times, DType result, std::int64_t M, std::int64_t N, std::int64_t K) {
    const double work = times * 2.0 * double(M) * double(N) * double(K);
    flops += work, seconds += work / s.limits.matrix_flops_per_second(DType::bf16, result, M, N, K);
  };
  for (const Site& site : s.sites.all()) {
    const std::int64_t T = site.head ? s.head_tokens() : s.tokens;
    const double times = site.head ? double(s.tokens) / double(T) : double(s.shape.layers);
    add(times, DType::bf16, T, site.out, site.in), add(times, DType::bf16, T, site.in, site.out), add(times, DType::f32, site.out, site.in, T);
  }
  return flops / seconds;
}

}  // namespace

Floor floor_of(Subject& s, const Work& work, const std::vector<PlanRow>& plan, std::int64_t step_tokens, const std::vector<Row>& attention) {
  Floor floor;
  if (s.stream.device() == Device::cpu) {
    floor.gemm_seconds = work.gemm_flops / cpu_rate(s);
  } else {
    const double fp8 = fp8_flops(s, work, plan, double(step_tokens));
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
