#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cpu/lanes.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Sixteen parallel sums for every register width, so that all instruction sets add in one order.
constexpr int sums = 16;

OCTET_HD double wide(float x) { return double(x); }
OCTET_HD double wide(Bf16 x) { return double(to_float(x)); }

template <class T>
OCTET_HD double sum_of_piece(const T* x, std::int64_t n) {
  double s[sums] = {};
  std::int64_t i = 0;
  for (; i + sums <= n; i += sums)
    for (int j = 0; j < sums; ++j) s[j] += wide(x[i + j]) * wide(x[i + j]);
  for (int j = 0; i + j < n; ++j) s[j] += wide(x[i + j]) * wide(x[i + j]);
  for (int half = sums / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) s[j] += s[j + half];
  return s[0];
}

}  // namespace

void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out) {
  for_each(count, count > 0 ? pieces[0].values.count() * 4 : 0, [&](std::int64_t i) {
    const Tensor& x = pieces[i].values;
    out[i] = x.dtype == DType::bf16 ? sum_of_piece(x.bf16(), x.count()) : sum_of_piece(x.f32(), x.count());
  });
}

}  // namespace octet::cpu::OCTET_ISA
