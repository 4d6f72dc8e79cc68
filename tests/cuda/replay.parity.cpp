#include "octet/ops/add/add.hpp"
#include "octet/tensor/replay.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  return {{"replay after a body failed while it was recorded", [](Side& side) {
             const Shape shape{64, 8};
             const Tensor a = side.gaussian(shape, 1), b = side.gaussian(shape, 2), sum = side.poisoned(shape, DType::f32);
             Replay replay;
             for (int run = 0; run < 4; ++run) try {
                 replay.run(side.stream(), {1}, [&] {
                   ops::add(side.stream(), run == 0 ? a : sum, b, sum);
                   if (run == 2) throw DataError("as it was recorded");
                 });
               } catch (const DataError&) {
                 if (side.device() == Device::cuda) ops::add(side.stream(), sum, b, sum);  // the recorded graph is lost
               }
             side.result("sum", sum, same_bits());
           }}};
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
