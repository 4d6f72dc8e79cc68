#include "octet/ops/swiglu/swiglu.hpp"

#include "tests/cuda/activation.hpp"

// One formula in one order of operations: the same bits, also of the codes.

namespace octet::parity {
namespace {

std::vector<Case> cases_of(const char* name, ops::Gate gate) {
  return activation_cases(
      name,
      {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{5, 40}, Shape{130, 264}, Shape{128, 128}, Shape{300, 896}, Shape{7, 64},
       Shape{1, 14336}, Shape{130, 288}},
      2, [=](Stream& stream, const ops::Saved& x, ops::Sink& y, ops::Sink* codes) { ops::swiglu_forward(stream, x, y, codes, gate); },
      [=](Stream& stream, const Tensor& dy, const ops::Saved& x, ops::Sink& dx) { ops::swiglu_backward(stream, dy, x, dx, gate); });
}

std::vector<Case> make() {
  std::vector<Case> cases = cases_of("swiglu", ops::Gate::silu);
  for (Case& c : cases_of("swiglu with gelu", ops::Gate::gelu)) cases.push_back(std::move(c));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
