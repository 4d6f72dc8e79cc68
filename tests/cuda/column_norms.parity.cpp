#include "octet/ops/column_norms/column_norms.hpp"
#include "tests/cuda/parity.hpp"

// Sums of squares are added in another order on a GPU: relative to the sum, D units at most, so half of that and a few more of the factor.

namespace octet::parity {
namespace {

Case heads(DType dtype, std::int64_t tokens, std::int64_t width, std::int64_t queries, std::int64_t keys) {
  return {format("column_norms {} {} tokens, {} and {} heads of {}", dtype, tokens, queries, keys, width), [=](Side& side) {
            const Tensor x = side.gaussian({tokens, (queries + 2 * keys) * width}, 1, dtype);
            ops::column_norms(side.stream(),
                              {.x = x,
                               .ranges = {{{side.gaussian({width}, 2), 0, queries}, {side.gaussian({width}, 3), queries * width, keys}}},
                               .eps = 1e-6f,
                               .offset = 1});
            // For one column the factor is up to 1000, then a value at most 6; for more, it is a few, and |x (1 + w)| below 40.
            side.result("x", x, within(160 * (double(width) / 2 + 8) * testing::unit_f32));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t tokens : {0, 1, 300}) {
      cases.push_back(heads(dtype, tokens, 128, 32, 8)), cases.push_back(heads(dtype, tokens, 4096, 1, 1));
      cases.push_back(heads(dtype, tokens, 7, 3, 2)), cases.push_back(heads(dtype, tokens, 1, 1, 1));
    }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
