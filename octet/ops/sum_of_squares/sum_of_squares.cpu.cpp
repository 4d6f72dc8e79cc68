#include "octet/ops/stored/cpu/group.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Sixteen parallel sums for every register width, so that all instruction sets add in one order.
constexpr int sums = 16;

OCTET_HD float wide(float x) { return x; }
OCTET_HD float wide(Bf16 x) { return to_float(x); }

struct PieceSums {
  double squares[sums] = {};
  float most[sums] = {};

  OCTET_HD void add_one(int j, float x) {
    squares[j] += double(x) * double(x);
    most[j] = larger(magnitude(x), most[j]);
  }
  template <class T>
  OCTET_HD void add(const T* x, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + sums <= n; i += sums)
      for (int j = 0; j < sums; ++j) add_one(j, wide(x[i + j]));
    for (int j = 0; i + j < n; ++j) add_one(j, wide(x[i + j]));
  }
  OCTET_HD double sum() {
    for (int half = sums / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) squares[j] += squares[j + half];
    return squares[0];
  }
  OCTET_HD float largest() const {
    float x = 0;
    for (const float m : most) x = larger(m, x);
    return x;
  }
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
