#include "octet/bench/random_data.hpp"

#include <algorithm>
#include <vector>

#include "octet/numerics/philox.hpp"
#include "octet/ops/normal/normal.hpp"

namespace octet::bench {
namespace {

// A multiple of 16 bytes with the factor 127: no row of a model divides it.
constexpr std::int64_t pool = 127 * 8 * 1031;

}  // namespace

RandomData::RandomData(Stream& stream)
    : f32_(stream.empty({pool}, DType::f32, Lifetime::run)), bf16_(stream.empty({pool}, DType::bf16, Lifetime::run)) {
  ops::fill_normal(stream, 11, 1, f32_), ops::fill_normal(stream, 11, 1, bf16_);
}

Tensor RandomData::values(Stream& stream, Shape shape, DType dtype, Region region) const {
  check(dtype == DType::f32 || dtype == DType::bf16, "random data: wants f32 or bf16, got {}", dtype);
  const Tensor t = stream.empty(shape, dtype, region), from = dtype == DType::f32 ? f32_ : bf16_, to = t.reshaped({t.count()});
  for (std::int64_t begin = 0; begin < to.count(); begin += pool) {
    const std::int64_t n = std::min(pool, to.count() - begin);
    copy(stream, from.rows(0, n), to.rows(begin, n));
  }
  return t;
}

Tensor RandomData::tokens(Stream& stream, std::int64_t n, std::int64_t below) const {
  const Tensor t = stream.empty({n}, DType::i32);
  upload(stream, random_tokens(n, below, 5).data(), t);
  return t;
}

std::vector<std::int32_t> random_tokens(std::int64_t n, std::int64_t below, std::uint64_t seed) {
  std::vector<std::int32_t> out(std::size_t(n), 0);
  for (std::int64_t i = 0; i < n; ++i) out[std::size_t(i)] = std::int32_t(philox(seed, std::uint64_t(i)).w[0] % std::uint32_t(below));
  return out;
}

}  // namespace octet::bench
