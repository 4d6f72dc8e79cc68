#include "octet/ops/gelu/gelu.hpp"

#include "tests/cuda/activation.hpp"

// One formula in one order of operations: the same bits, also of the codes.

namespace octet::parity {
namespace {

std::vector<Case> make() {
  return activation_cases(
      "gelu", {Shape{0, 8}, Shape{1, 1}, Shape{3, 7}, Shape{5, 40}, Shape{130, 264}, Shape{300, 896}, Shape{7, 96}, Shape{130, 288}}, 1,
      [](Stream& stream, const ops::Saved& x, ops::Sink& y, ops::Sink* codes) { ops::gelu_forward(stream, x, y, codes); },
      [](Stream& stream, const Tensor& dy, const ops::Saved& x, ops::Sink& dx) { ops::gelu_backward(stream, dy, x, dx); });
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
