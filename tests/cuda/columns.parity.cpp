#include <array>

#include "octet/ops/columns/columns.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t rows : {0, 1, 3, 1000})
      for (const bool gather : {true, false})
        cases.push_back({format("copy_columns {} {} {}", dtype, rows, gather ? "out" : "in"), [=](Side& side) {
                           const Tensor wide = side.gaussian({rows, 257}, 1, dtype), narrow = side.gaussian({rows, 65}, 2, dtype);
                           ops::copy_columns(side.stream(), {.from = gather ? wide : narrow,
                                                             .from_column = gather ? 101 : 0,
                                                             .to = gather ? narrow : wide,
                                                             .to_column = gather ? 1 : 101,
                                                             .columns = 64});
                           side.result("to", gather ? narrow : wide, same_bits());
                         }});
  // Packs of 2, 4, 8 and 16 bytes, and rows of more than one block's threads.
  for (const auto& [from, at, columns] :
       std::vector<std::array<std::int64_t, 3>>{{96, 2, 34}, {96, 4, 36}, {96, 8, 48}, {6144, 2048, 2056}})
    cases.push_back(
        {format("copy_columns bf16 {} of {} from {}", columns, from, at), [=](Side& side) {
           const Tensor wide = side.gaussian({261, from}, 1, DType::bf16), narrow = side.gaussian({261, columns}, 2, DType::bf16);
           ops::copy_columns(side.stream(), {.from = wide, .from_column = at, .to = narrow, .columns = columns});
           ops::copy_columns(side.stream(), {.from = narrow, .to = wide, .to_column = 0, .columns = columns});
           side.result("to", narrow, same_bits()), side.result("back", wide, same_bits());
         }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
