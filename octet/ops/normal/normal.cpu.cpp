#include <algorithm>

#include "octet/ops/normal/cpu/pairs.hpp"
#include "octet/ops/normal/normal.kernels.hpp"
#include "octet/ops/stored/cpu/encode.hpp"

namespace octet::cpu::OCTET_ISA {

void fill_normal(std::uint64_t key, float deviation, const Tensor& x, std::int64_t first) {
  dispatch<float, Bf16>(x.dtype, "fill_normal", [&]<class T>() {
    for_each_piece(x.count(), 64, [&](std::int64_t begin, std::int64_t n) {
      for (std::int64_t i = 0; i < n; i += 2 * width) fill_pairs(key, deviation, x.as<T>() + begin + i, first + begin + i, n - i);
    });
  });
}

namespace {

/// Values [place, place + n) of the whole, fewer than a group and its draw's first ones.
void fill_run(const ops::FillStoredNormal& a, float* to, std::int64_t place, std::int64_t n) {
  alignas(64) float values[storage_block + 4];
  const std::int64_t from = place / 4 * 4, before = place - from;
  for (std::int64_t i = 0; i < before + n; i += 2 * width) fill_pairs(a.key, a.deviation, values + i, from + i, before + n - i);
  __builtin_memcpy(to, values + before, std::size_t(n) * sizeof(float));
}

}  // namespace

void fill_stored_normal(const ops::FillStoredNormal& a) {
  const auto make = [&](std::int64_t first, std::int64_t count) {
    return [&a, first, count](std::int64_t group, GroupLane::Group& x) {
      alignas(64) float values[storage_block] = {};
      const std::int64_t begin = group * storage_block, n = std::min(storage_block, count - begin);
      for (std::int64_t i = 0, run = 0; i < n; i += run) {
        const std::int64_t at = first + begin + i;
        run = std::min(a.places.neighbours(at), n - i);
        fill_run(a, values + i, a.places(at), run);
      }
      __builtin_memcpy(&x, values, sizeof(values));
    };
  };
  const Stored& out = a.out.stored;
  const std::int64_t whole = a.out.whole.count();
  encode_groups(out, Tiny::flush, scales_tensor(out.storage) ? maximum_of(whole, make(0, whole)) : 0, make(a.out.first, out.count()));
}

}  // namespace octet::cpu::OCTET_ISA
