#include "octet/ops/stored/stored.hpp"
#include "tests/cuda/parity.hpp"

// Values to codes of every storage and back: equal bits, scales included.

namespace octet::parity {
namespace {

std::vector<float> spread_values(std::int64_t n, double spread, Storage storage) {
  std::vector<float> x = testing::gaussian(std::size_t(n), 3);
  const std::vector<float> wide = testing::gaussian(std::size_t(n), 4, spread);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 41 == 5 ? 0 : x[i] * std::exp(wide[i]);
    if (storage == Storage::e4m3_root) x[i] = std::fabs(x[i]);
    if (i % 1000 == 999) x[i] = i % 2000 == 999 && n % 2 ? INFINITY : 1e-40f;
  }
  return x;
}

Case stored(Storage storage, std::int64_t n, double spread, ops::Tiny tiny) {
  return {format("stored {} of {} values, spread {}, tiny {}", name(storage), n, spread, int(tiny)), [=](Side& side) {
            Stored x{.codes = side.poisoned({n}, code_type(storage)), .scales = {}, .storage = storage};
            if (scales_tensor(storage) || scales_blocks(storage)) x.scales = side.poisoned(scales_shape(storage, n), scales_type(storage));
            const Tensor back = side.poisoned({n}, DType::f32);
            ops::encode_stored(side.stream(), side.from(spread_values(n, spread, storage), {n}), x, tiny);
            ops::decode_stored(side.stream(), x, back);
            side.result("codes", x.codes, same_bits());
            if (x.scales) side.result("scales", x.scales, same_bits());
            if (n % 2 == 0) side.result("values", back, same_bits());  // otherwise some are NaN, whose payloads may differ
          }};
}

// Every code under every scale of a block, also those that no encoder writes: 0 is 2^-127 and 255 is NaN.
Case every_scale(Storage storage) {
  return {format("stored {} of every scale", name(storage)), [=](Side& side) {
            std::vector<std::uint8_t> codes(256 * 256), scales(512);
            for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = std::uint8_t(i);
            for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = std::uint8_t(i / 2);
            const Tensor c = side.raw(codes, {std::int64_t(codes.size())}), d = side.raw(scales, {std::int64_t(scales.size())});
            const Stored x{.codes = {c.data, c.shape, code_type(storage)}, .scales = {d.data, d.shape, DType::e8m0}, .storage = storage};
            const Tensor back = side.poisoned({std::int64_t(codes.size())}, DType::f32);
            ops::decode_stored(side.stream(), x, back);
            side.result("values", back, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const Storage storage : {Storage::e4m3, Storage::e4m3_root}) cases.push_back(every_scale(storage));
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::bf16_nearest, Storage::f16, Storage::e4m3, Storage::e4m3_tensor,
                                Storage::e4m3_expanded, Storage::e4m3_root})
    for (const std::int64_t n : {0, 1, 7, 128, 129, 4096, 100003})
      for (const double spread : {0.0, 2.0}) cases.push_back(stored(storage, n, spread, n % 2 ? ops::Tiny::keep : ops::Tiny::flush));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
