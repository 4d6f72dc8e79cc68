#include "octet/ops/most_likely/most_likely.hpp"

#include "tests/cuda/parity.hpp"

// Integers: the same bits.

namespace octet::parity {
namespace {

Case most_likely_of(DType dtype, std::int64_t rows, std::int64_t vocabulary, std::int64_t columns) {
  return {format("most_likely {} {} of [{}, {}]", dtype, vocabulary, rows, columns), [=](Side& side) {
            std::vector<float> values = testing::gaussian(std::size_t(rows * columns), 5, 3);
            for (std::size_t i = 0; i < values.size(); ++i) {
              values[i] = std::round(values[i]);  // the largest is there more than once
              if (std::int64_t(i) % columns >= vocabulary) values[i] = NAN;
            }
            if (rows > 2) values[std::size_t(columns + vocabulary / 2)] = INFINITY, values[std::size_t(2 * columns + vocabulary - 1)] = NAN;
            const Tensor ids = side.poisoned({rows}, DType::i32);
            ops::most_likely(side.stream(), {.logits = side.from(values, {rows, columns}, dtype), .vocabulary = vocabulary, .ids = ids});
            side.result("ids", ids, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t rows : {1, 3, 8, 16})
      for (const auto& [vocabulary, columns] : {std::pair{1, 1}, {61, 64}, {1025, 1025}, {50257, 50304}, {128256, 128256}})
        cases.push_back(most_likely_of(dtype, rows, vocabulary, columns));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
