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
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
