#include "octet/ops/running_mean/running_mean.hpp"
#include "tests/cuda/parity.hpp"
#include "tests/cuda/some_codes.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Shape shape : {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{128, 896}, Shape{1000, 123}})
      cases.push_back({format("running_mean {} {}", dtype, shape), [=](Side& side) {
                         const Tensor x = side.gaussian(shape, 1, dtype), mean = side.gaussian(shape, 2, DType::f32);
                         ops::running_mean(side.stream(), x, 1.0f / 3, mean);
                         side.result("mean", mean, same_bits());
                       }});
  for (const Storage storage : {Storage::f16, Storage::e4m3_tensor})
    for (const Shape shape : {Shape{0, 8}, Shape{3, 7}, Shape{128, 896}, Shape{1000, 123}})
      cases.push_back({format("running_mean {} {}", storage, shape), [=](Side& side) {
                         const Tensor mean = side.gaussian(shape, 2, DType::f32);
                         ops::running_mean(side.stream(), some_codes(side, storage, shape), 1.0f / 3, mean);
                         side.result("mean", mean, same_bits());
                       }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
