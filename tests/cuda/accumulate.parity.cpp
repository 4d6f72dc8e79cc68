#include "octet/ops/accumulate/accumulate.hpp"

#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/tensor/replay.hpp"
#include "tests/cuda/parity.hpp"

// Gradients in 8 bits: sums over micro-batches with equal bits, their norms and maxima.

namespace octet::parity {
namespace {

Stored poisoned(Side& side, Storage storage, std::int64_t n) {
  return {.codes = side.poisoned({n}, DType::e4m3),
          .scales = side.poisoned(scales_shape(storage, n), scales_type(storage)),
          .storage = storage};
}

// Gradients of one micro-batch: values of many sizes, zeros, tiny ones and a few that E4M3 cannot hold.
std::vector<float> gradient(std::int64_t n, std::uint64_t seed, bool nonfinite) {
  std::vector<float> x = testing::gaussian(std::size_t(n), seed, 1e-3);
  const std::vector<float> wide = testing::gaussian(std::size_t(n), seed + 100, 1.5);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 41 == 5 ? 0 : x[i] * std::exp(wide[i]);
    if (i % 128 < 64 && i % 4096 < 128) x[i] = i % 2 ? 0 : 1e-40f;
    if (nonfinite && i % 1000 == 999) x[i] = i % 2000 == 999 ? INFINITY : NAN;
  }
  return x;
}

Case sums(Storage storage, std::int64_t n, DType type, bool nonfinite) {
  return {format("accumulate {} of {} values of {}, nonfinite {}", name(storage), n, type, nonfinite), [=](Side& side) {
            const Stored sum = poisoned(side, storage, n);
            for (std::int64_t part = 0; part < 3; ++part)
              ops::accumulate(side.stream(), {.x = side.from(gradient(n, std::uint64_t(part), nonfinite), {n}, type),
                                              .sum = sum,
                                              .draws = side.raw(std::vector<std::int64_t>{part, 77}, {2}),
                                              .key = 0x123456789ABCDEFu});
            side.result("codes", sum.codes, same_bits()), side.result("scales", sum.scales, same_bits());
            const Tensor squares = side.raw(std::vector<double>{0}, {1}), maxima = side.from({0}, {1});
            ops::sum_of_squares(side.stream(), {.x = std::span(&sum, 1), .sums = squares, .maxima = maxima});
            side.result("maxima", maxima, same_bits());
            if (!nonfinite) side.result("squares", squares, within(4 * double(n) * 0x1p-53 * 1e-2 * double(n)));
          }};
}

// A recorded addition reads the numbers of its draws each time.
Case replayed() {
  return {"accumulate in a replayed graph", [](Side& side) {
            const std::int64_t n = 5000;
            const Stored sum = poisoned(side, Storage::e4m3, n);
            const Tensor x = side.from(gradient(n, 1, false), {n}), draws = side.raw(std::vector<std::int64_t>{0, 0}, {2});
            Replay replay;
            for (std::int64_t part = 0; part < 6; ++part) {
              const std::int64_t numbers[] = {part, 3};
              upload(side.stream(), numbers, draws);
              replay.run(side.stream(), {1}, [&] { ops::accumulate(side.stream(), {.x = x, .sum = sum, .draws = draws, .key = 8}); });
            }
            side.result("codes", sum.codes, same_bits()), side.result("scales", sum.scales, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases{replayed()};
  for (const Storage storage : {Storage::e4m3, Storage::e4m3_tensor})
    for (const DType type : {DType::f32, DType::bf16})
      for (const std::int64_t n : {0, 1, 7, 127, 128, 129, 4097, 100003, 400000}) {
        cases.push_back(sums(storage, n, type, false));
        if (n > 1000) cases.push_back(sums(storage, n, type, true));
      }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
