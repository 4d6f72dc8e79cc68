#include "octet/ops/normal/normal.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t n : {0, 1, 6, 1 << 20, 999999})
      cases.push_back({format("fill_normal {} {}", dtype, n), [=](Side& side) {
                         const Tensor x = side.poisoned({n}, dtype);
                         ops::fill_normal(side.stream(), 0x123456789ABCDEFull, 0.02, x);
                         side.result("x", x, same_bits());
                       }});
  for (const Storage storage : {Storage::f16, Storage::e4m3, Storage::e4m3_tensor, Storage::e4m3_expanded})
    for (const std::int64_t n : {0, 1, 6, 128, 1 << 20, 999999})
      cases.push_back({format("fill_normal {} {} from the third group of more", name(storage), n), [=](Side& side) {
                         const Stored x{.codes = side.poisoned({n}, code_type(storage)),
                                        .scales = side.poisoned(scales_shape(storage, n), scales_type(storage)),
                                        .storage = storage};
                         ops::fill_normal(side.stream(), 0x123456789ABCDEFull, 0.02, StoredSlice{x, {n + 1280}, 256});
                         side.result("codes", x.codes, same_bits());
                         side.result("scales", x.scales, same_bits());
                       }});
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::f16, Storage::e4m3, Storage::e4m3_tensor})
    for (const std::int64_t columns : {37, 64, 1000})
      cases.push_back({format("fill_normal {} {} columns of more", name(storage), columns), [=](Side& side) {
                         const Cut cut = Cut::of_columns({999, 1003}, 3, columns);
                         const std::int64_t n = 999 * columns;
                         Stored x{.codes = side.poisoned({n}, code_type(storage)), .scales = {}, .storage = storage};
                         const bool scaled = scales_tensor(storage) || scales_blocks(storage);
                         if (scaled) x.scales = side.poisoned(scales_shape(storage, n), scales_type(storage));
                         ops::fill_normal(side.stream(), 0x123456789ABCDEFull, 0.02, StoredSlice{x, {n}, 0, &cut});
                         side.result("codes", x.codes, same_bits());
                         if (scaled) side.result("scales", x.scales, same_bits());
                       }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
