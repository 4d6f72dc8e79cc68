#include "octet/ops/clamp_columns/clamp_columns.hpp"
#include "tests/cuda/parity.hpp"

// Comparisons and copies: the same bits. Rows and columns with and without eights that are aligned.

namespace octet::parity {
namespace {

struct Columns {
  std::int64_t from, first, to, at, columns;
};

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t rows : {0, 1, 3, 1000})
      for (const Columns& c : {Columns{256, 64, 128, 0, 128}, Columns{257, 101, 65, 1, 61}})
        cases.push_back(
            {format("clamp_columns {} {} {}", dtype, rows, c.columns), [=](Side& side) {
               const Tensor x = side.gaussian({rows, c.from}, 1, dtype), y = side.gaussian({rows, c.to}, 2, dtype);
               const Tensor outside = side.stream().zeros({rows, ops::clamp_bytes(c.columns)}, DType::u8);
               const ops::CopyColumns columns{.from = x, .from_column = c.first, .to = y, .to_column = c.at, .columns = c.columns};
               ops::clamp_columns(side.stream(), {.columns = columns, .limit = 0.7f, .outside = outside});
               side.result("y", y, same_bits());
               side.result("outside", outside, same_bits());
               const ops::CopyColumns in_place{.from = x, .from_column = c.first, .to = x, .to_column = c.first, .columns = c.columns};
               ops::clamp_columns_backward(side.stream(), {.columns = in_place, .outside = outside});
               side.result("gradient", x, same_bits());
             }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
