#include "octet/ops/stored/cpu/group.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Sixteen parallel sums for every register width, so that all instruction sets add in one order.
constexpr int sums = 16;

// Squares and maxima are two passes over values in the nearest cache: one loop with both is not vectorized.
constexpr std::int64_t chunk = 1024;

OCTET_HD double wide(float x) { return double(x); }
OCTET_HD double wide(Bf16 x) { return double(to_float(x)); }

struct PieceSums {
  double squares[sums] = {};
  Vec most{};

  template <class T>
  OCTET_HD void add_squares(const T* x, std::int64_t n) {
    double s[sums];
    for (int j = 0; j < sums; ++j) s[j] = squares[j];
    std::int64_t i = 0;
    for (; i + sums <= n; i += sums)
      for (int j = 0; j < sums; ++j) s[j] += wide(x[i + j]) * wide(x[i + j]);
    for (int j = 0; i + j < n; ++j) s[j] += wide(x[i + j]) * wide(x[i + j]);
    for (int j = 0; j < sums; ++j) squares[j] = s[j];
  }
  template <class T>
  OCTET_HD void add(const T* x, std::int64_t n) {
    for (std::int64_t at = 0; at < n; at += chunk) {
      const std::int64_t some = n - at < chunk ? n - at : chunk;
      Lane{}.each(some, [&](auto c) { most = larger(magnitude(Lane{}.load(x + at, c)), most); });
      add_squares(x + at, some);
    }
  }
  OCTET_HD double sum() {
    for (int half = sums / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) squares[j] += squares[j + half];
    return squares[0];
  }
  OCTET_HD float largest() const { return Lane{}.max(most); }
};

// Values of codes are those of f32 that hold them: the sums have the same bits.
void add_decoded(PieceSums& s, const ops::SumPiece& p) {
  for (std::int64_t at = p.begin; at < p.begin + p.count; at += storage_block) {
    GroupLane::Group group;
    ops::load_group(GroupLane{}, p.values, at / storage_block, group);
    float values[storage_block];
    __builtin_memcpy(values, group.v, sizeof(values));
    const std::int64_t left = p.begin + p.count - at;
    s.add(values, left < storage_block ? left : storage_block);
  }
}

}  // namespace

void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out, float* maxima) {
  for_each(count, count > 0 ? pieces[0].count * 4 : 0, [&](std::int64_t i) {
    const ops::SumPiece& p = pieces[i];
    PieceSums s;
    switch (code_type(p.values.storage)) {
      case DType::f32: s.add(p.values.as<float>() + p.begin, p.count); break;
      case DType::bf16: s.add(p.values.as<Bf16>() + p.begin, p.count); break;
      default: add_decoded(s, p);
    }
    out[i] = s.sum(), maxima[i] = s.largest();
  });
}

}  // namespace octet::cpu::OCTET_ISA
