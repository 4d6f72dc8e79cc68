#include "octet/ops/stored/cpu/group.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Sixteen parallel sums for every register width, so that all instruction sets add in one order.
constexpr int sums = 16;

typedef double Doubles __attribute__((vector_size(sizeof(Vec))));
constexpr int half_width = width / 2;

/// sum + x x of half of the lanes. The product of two floats is exact, so a fused addition has the same bits.
template <int half>
OCTET_HD Doubles add_squares(Doubles sum, Vec x) {
#ifdef OCTET_ISA_v4
  const __m512d wide = _mm512_cvtps_pd(half == 0 ? _mm512_castps512_ps256((__m512)x) : _mm512_extractf32x8_ps((__m512)x, 1));
  return (Doubles)_mm512_fmadd_pd(wide, wide, (__m512d)sum);
#else
  const __m256d wide = _mm256_cvtps_pd(half == 0 ? _mm256_castps256_ps128((__m256)x) : _mm256_extractf128_ps((__m256)x, 1));
  return (Doubles)_mm256_fmadd_pd(wide, wide, (__m256d)sum);
#endif
}

struct PieceSums {
  Doubles squares[sums / half_width] = {};
  Vec most{};

  /// Values i .. i + width of the piece, i a multiple of `width`; 0 beyond its end.
  OCTET_HD void add(std::int64_t i, Vec x) {
    most = larger(magnitude(x), most);
    Doubles* const s = squares + i % sums / half_width;
    s[0] = add_squares<0>(s[0], x), s[1] = add_squares<1>(s[1], x);
  }
  OCTET_HD double sum() const {
    double s[sums];
    __builtin_memcpy(s, squares, sizeof(s));
    for (int half = sums / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) s[j] += s[j + half];
    return s[0];
  }
  OCTET_HD float largest() const { return Lane{}.max(most); }
};

template <class T>
void add_values(PieceSums& out, const T* x, std::int64_t n) {
  PieceSums s;
  Lane{}.each(n, [&](auto at) { s.add(at.at, Lane{}.load(x, at)); });
  out = s;
}
// Values of codes are those of f32 that hold them: the sums have the same bits.
template <class Codec>
void add_decoded(PieceSums& out, Codec codec, const ops::SumPiece& p) {
  const auto value_bytes = std::int64_t(size_of(code_type(p.values.storage)));
  PieceSums s;
  const std::int64_t first = p.begin / storage_block;
  for (std::int64_t group = first; group < first + ops::groups_of(p.count); ++group) {
    GroupLane{}.prefetch(p.values.codes, value_bytes, group + groups_ahead);
    GroupLane::Group x;
    ops::load_group(codec, GroupLane{}, p.values, group, x);
    for (int i = 0; i < GroupLane::packs; ++i) s.add(i * width, x.v[i]);
  }
  out = s;
}

}  // namespace

void sum_of_squares(const ops::SumPiece* pieces, std::int64_t count, double* out, float* maxima) {
  for_each(count, count > 0 ? pieces[0].count * 4 : 0, [&](std::int64_t i) {
    const ops::SumPiece& p = pieces[i];
    PieceSums s;
    switch (code_type(p.values.storage)) {
      case DType::f32: add_values(s, p.values.as<float>() + p.begin, p.count); break;
      case DType::bf16: add_values(s, p.values.as<Bf16>() + p.begin, p.count); break;
      default: ops::with_codec(p.values.storage, [&](auto codec) { add_decoded(s, codec, p); });
    }
    out[i] = s.sum(), maxima[i] = s.largest();
  });
}

}  // namespace octet::cpu::OCTET_ISA
