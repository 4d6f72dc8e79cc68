#include "octet/ops/common_scale/common_scale.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"
#include "tests/cuda/parity.hpp"

// Sums of encoded parts, and the scales that parts share: equal bits, since values are added in one order.

namespace octet::parity {
namespace {

Stored poisoned(Side& side, Storage storage, std::int64_t n, float descale) {
  Stored x{.codes = side.poisoned({n}, code_type(storage)), .scales = {}, .storage = storage};
  if (scales_blocks(storage)) x.scales = side.poisoned(scales_shape(storage, n), scales_type(storage));
  if (scales_tensor(storage)) x.scales = side.from({descale, 0}, {2});
  return x;
}

Case summed(Storage in, Storage out, int parts, std::int64_t n) {
  return {format("stored_sum {} parts of {} {} to {}", parts, n, name(in), name(out)), [=](Side& side) {
            const Tensor values = side.gaussian({parts * n}, 3, DType::f32, 3);
            const Stored x = poisoned(side, in, parts * n, 0.01f), sum = poisoned(side, out, n, 0.03f);
            ops::stored_sum(side.stream(), {.parts = Stored::plain(values), .sum = x});
            const Tensor counts = is_fp8(sum.codes.dtype) ? side.raw(std::vector<std::int64_t>{5, 7}, {2}) : Tensor{};
            ops::stored_sum(side.stream(), {.parts = x, .sum = sum, .counts = counts});
            side.result("parts", x.codes, same_bits());
            side.result("sum", sum.codes, same_bits());
            if (out == Storage::e4m3) side.result("scales", sum.scales, same_bits());
            if (counts) side.result("counts", counts, same_bits());
          }};
}

Case scaled(DType dtype) {
  return {format("common_scales of {}", dtype), [=](Side& side) {
            std::vector<Tensor> x;
            for (const std::int64_t n : {0, 1, 7, 100003}) x.push_back(side.gaussian({n}, std::uint64_t(n), dtype));
            const Tensor amax = side.poisoned({4}, DType::f32), mu = side.from({1, 0.5f, 0.3f, 0.125f}, {4});
            const Tensor scales = side.poisoned({4, 2}, DType::f32),
                         counts = side.raw(std::vector<std::int64_t>{0, 0, 1, 0, 2, 0, 0, 0}, {4, 2});
            ops::tensor_maxima(side.stream(), x, amax);
            ops::common_scales(side.stream(), amax, mu, scales);
            const Tensor limits = side.raw(std::vector<std::int64_t>{0, 1, 1, 1}, {4});
            ops::advance_mu(side.stream(), {.mu = mu, .counts = counts, .limits = limits});
            side.result("amax", amax, same_bits()), side.result("scales", scales, same_bits()), side.result("mu", mu, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const Storage in : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor})
    for (const Storage out : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor})
      for (const std::int64_t n : {128, 4096, 100096}) cases.push_back(summed(in, out, 3, n));
  for (const std::int64_t n : {0, 1, 7, 129, 100003}) cases.push_back(summed(Storage::bf16, Storage::e4m3, 1, n));
  for (const DType dtype : {DType::f32, DType::bf16}) cases.push_back(scaled(dtype));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
