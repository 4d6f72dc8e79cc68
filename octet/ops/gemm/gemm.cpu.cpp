#include "octet/ops/gemm/gemm.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void round_sums(const Tensor& sums, float alpha, const float* bias, const Tensor& d) {
  const std::int64_t N = d.shape[1];
  dispatch<Bf16, Fp16>(d.dtype, "round_sums", [&]<class T>() {
    for_each(d.shape[0], N * 6, [&](std::int64_t r) {
      const float* const s = sums.f32() + r * N;
      T* const out = d.as<T>() + r * N;
      if (bias != nullptr) Lane{}.each(N, [&](auto c) { Lane{}.store(out, c, Lane{}.load(s, c) * alpha + Lane{}.load(bias, c)); });
      else Lane{}.each(N, [&](auto c) { Lane{}.store(out, c, Lane{}.load(s, c) * alpha); });
    });
  });
}

void add_sums(const Tensor& sums, float alpha, const float* bias, const Tensor& d) {
  const std::int64_t N = d.shape[1];
  dispatch<float, Bf16, Fp16>(d.dtype, "add_sums", [&]<class T>() {
    for_each(d.shape[0], N * 12, [&](std::int64_t r) {
      const float* const s = sums.f32() + r * N;
      T* const out = d.as<T>() + r * N;
      if (bias != nullptr)
        Lane{}.each(N, [&](auto c) { Lane{}.store(out, c, Lane{}.load(out, c) + (Lane{}.load(s, c) * alpha + Lane{}.load(bias, c))); });
      else Lane{}.each(N, [&](auto c) { Lane{}.store(out, c, Lane{}.load(out, c) + Lane{}.load(s, c) * alpha); });
    });
  });
}

void add_column_sums(const Tensor& x, const Tensor& db, const Tensor&) {
  constexpr std::int64_t strip = 128,
                         run = 128;  // columns a job; rows summed before they join the total, which keeps rounding errors small
  const std::int64_t M = x.shape[0], N = x.shape[1];
  dispatch<float, Bf16, Fp16>(x.dtype, "add_column_sums", [&]<class T>() {
    for_each(ceil_div(N, strip), M * strip * std::int64_t(sizeof(T)), [&](std::int64_t job) {
      const std::int64_t n0 = job * strip;
      float sums[strip] = {};
      for (std::int64_t m0 = 0; m0 < M; m0 += run)
        Lane{}.each(N - n0 < strip ? N - n0 : strip, [&](auto c) {
          Vec sum{};
          for (std::int64_t m = m0; m < M && m < m0 + run; ++m) sum = sum + Lane{}.load(x.as<T>() + m * N + n0, c);
          store_raw(sums, c, Vec(load_raw<Vec>(sums, c) + sum));
        });
      for (std::int64_t n = n0; n < N && n < n0 + strip; ++n) db.f32()[n] += sums[n - n0];
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
