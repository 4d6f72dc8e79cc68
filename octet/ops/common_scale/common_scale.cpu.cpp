#include <algorithm>

#include "octet/ops/common_scale/common_scale.kernels.hpp"
#include "octet/ops/common_scale/common_scale.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

OCTET_HD float wide(float x) { return x; }
OCTET_HD float wide(Bf16 x) { return to_float(x); }

template <class T>
float maximum(const T* x, std::int64_t n) {
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float size = ops::finite_magnitude(wide(x[i]));
    most = size > most ? size : most;
  }
  return most;
}

}  // namespace

void tensor_maximum(const Tensor& x, const Tensor& amax) {
  std::int32_t* const bits = amax.as<std::int32_t>();  // of floats >= 0, ordered as they are
  for_each_piece(x.count(), std::int64_t(size_of(x.dtype)), [&](std::int64_t begin, std::int64_t n) {
    const std::int32_t own = int_of(x.dtype == DType::f32 ? maximum(x.f32() + begin, n) : maximum(x.bf16() + begin, n));
    std::int32_t seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
    while (own > seen && !__atomic_compare_exchange_n(bits, &seen, own, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  });
}

void common_scales(const Tensor& amax, const Tensor& mu, const Tensor& scales) {
  for (std::int64_t i = 0; i < amax.count(); ++i) {
    scales.f32()[2 * i] = ops::common_descale(amax.f32()[i], mu.f32()[i]);
    scales.f32()[2 * i + 1] = amax.f32()[i];
  }
}

void advance_mu(const ops::AdvanceMu& a) {
  for (std::int64_t i = 0; i < a.mu.count(); ++i) {
    float& mu = a.mu.f32()[i];
    mu = ops::next_mu(mu, a.counts.as<std::int64_t>()[2 * i], a.limits.as<std::int64_t>()[i], a.growth);
  }
}

}  // namespace octet::cpu::OCTET_ISA
