#include "octet/ops/cross_entropy/cross_entropy.kernels.hpp"
#include "octet/ops/cross_entropy/cross_entropy.math.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

OCTET_HD void store(float* p, float x) { *p = x; }
OCTET_HD void store(Bf16* p, float x) { *p = to_bf16(x); }
OCTET_HD void store(Fp16* p, float x) { *p = to_fp16(x); }
OCTET_HD float load(const float* p) { return *p; }
OCTET_HD float load(const Bf16* p) { return to_float(*p); }
OCTET_HD float load(const Fp16* p) { return to_float(*p); }

// One token t; returns its loss.
template <class T>
float cross_entropy_row(const ops::CrossEntropy& a, std::int64_t t, std::int64_t target, T* x) {
  const std::int64_t columns = a.logits.shape[1];
  if (target == -1) {
    if (a.gradient) __builtin_memset(x, 0, std::size_t(columns) * sizeof(T));
    return 0;
  }
  const std::int64_t rows = a.logits.shape[0], column = target - a.first;
  const bool here = column >= 0 && column < a.vocabulary;
  const ops::JoinedRow joined =
      a.parts ? ops::joined_row(a.parts.f32(), a.parts.shape[0] / rows, rows, t)
              : ops::JoinedRow{ops::row_softmax(Lane{}, a.vocabulary, x), here ? load(x + column) : __builtin_nanf("")};
  const ops::RowSoftmax<float>& row = joined.softmax;
  const float logit = joined.logit;
  if (a.gradient) {
    const float factor = ops::gradient_factor(a.gradient_scale, a.loss_scale.f32(), a.weights.f32(), t);
    ops::scaled_softmax(Lane{}, a.vocabulary, row, factor, x, x);
    // From the unrounded softmax: p - 1 must not cancel the bits of p that BF16 keeps.
    if (here) store(x + column, (math::exp(logit - row.most) / row.sum - 1.0f) * factor);
    __builtin_memset(x + a.vocabulary, 0, std::size_t(columns - a.vocabulary) * sizeof(T));
  }
  return ops::cross_entropy_loss(row, logit);
}

}  // namespace

void cross_entropy(const ops::CrossEntropy& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  const auto* const targets = a.targets.as<std::int32_t>();
  float* const losses = a.losses.f32();
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "cross_entropy", [&]<class T>() {
    for_each(rows, columns * 16, [&](std::int64_t t) { losses[t] = cross_entropy_row(a, t, targets[t], a.logits.as<T>() + t * columns); });
  });
  double sum = 0;
  std::int64_t counted = 0;
  for (std::int64_t t = 0; t < rows; ++t) sum += double(losses[t]), counted += targets[t] != -1;
  *a.loss_sum.as<double>() += sum;
  *a.counted.as<std::int64_t>() += counted;
}

void logit_statistics(const ops::LogitStatistics& a) {
  const std::int64_t rows = a.logits.shape[0], columns = a.logits.shape[1];
  dispatch<float, Bf16, Fp16>(a.logits.dtype, "logit_statistics", [&]<class T>() {
    for_each(rows, columns * 8, [&](std::int64_t t) {
      const T* const x = a.logits.as<T>() + t * columns;
      const std::int64_t column = a.targets.as<std::int32_t>()[t] - a.first;
      const ops::RowSoftmax<float> row = ops::row_softmax(Lane{}, a.vocabulary, x);
      float* const out = a.statistics.f32() + t * 3;
      out[0] = row.most, out[1] = row.sum, out[2] = column >= 0 && column < a.vocabulary ? load(x + column) : __builtin_nanf("");
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
