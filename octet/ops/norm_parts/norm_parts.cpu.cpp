#include "octet/ops/norm_parts/norm_parts.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <class T>
const T* row_of(const ops::ColumnsOf& x, std::int64_t t) {
  return x.of.as<T>() + t * x.of.shape[1] + x.first;
}

}  // namespace

void norm_squares(const ops::NormSquares& a) {
  dispatch<float, Bf16, Fp16>(a.x.of.dtype, "norm_squares", [&]<class T>() {
    for_each(a.x.of.shape[0], a.columns * std::int64_t(sizeof(T)),
             [&](std::int64_t t) { a.sums.f32()[t] = ops::rmsnorm_squares(Lane{}, a.columns, row_of<T>(a.x, t)); });
  });
}

void norm_products(const ops::NormProducts& a) {
  dispatch<float, Bf16, Fp16>(a.x.of.dtype, "norm_products", [&]<class T>() {
    const std::int64_t columns = a.w.count();
    for_each(a.x.of.shape[0], 2 * columns * std::int64_t(sizeof(T)), [&](std::int64_t t) {
      a.sums.f32()[t] =
          ops::rmsnorm_products(Lane{}, columns, row_of<T>(a.dy, t), row_of<T>(a.x, t), a.w.f32(), a.offset, a.inv_rms.f32()[t]);
    });
  });
}

void norm_factors(const ops::NormOfSums& a) {
  float* const s = a.sums.f32();
  for_each(a.sums.count(), 8, [&](std::int64_t t) { s[t] = ops::rmsnorm_factor(Lane{}, s[t], a.columns, a.eps); });
}

void norm_means(const ops::NormOfSums& a) {
  float* const s = a.sums.f32();
  for_each(a.sums.count(), 8, [&](std::int64_t t) { s[t] = s[t] / float(a.columns); });
}

}  // namespace octet::cpu::OCTET_ISA
