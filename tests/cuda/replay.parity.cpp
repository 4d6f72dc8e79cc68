#include "octet/ops/add/add.hpp"
#include "octet/tensor/replay.hpp"
#include "octet/tensor/side_work.hpp"
#include "tests/cuda/parity.hpp"

namespace octet::parity {
namespace {

std::vector<Case> make() {
  return {{"replay after a body failed while it was recorded",
           [](Side& side) {
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
           }},
          // Small ones become kernels of the graph.
          {"memory that a recorded body clears",
           [](Side& side) {
             Stream& stream = side.stream();
             const Tensor all = side.gaussian({3 << 18}, 1), more = side.gaussian({4096}, 2), copies = side.gaussian({4 * 4096}, 3);
             Replay replay;
             for (int run = 0; run < 4; ++run)
               replay.run(stream, {1}, [&] {
                 std::int64_t at = 0, i = 0;
                 for (const std::int64_t n : {1, 1003, 70001, 1 << 19}) {
                   const std::int64_t few = std::min<std::int64_t>(n, 4096);
                   const Tensor seen = all.rows(at, few), added = more.rows(0, few);
                   ops::add(stream, seen, added, seen);
                   clear(stream, all.rows(at + i % 2, n));  // aligned, or not
                   copy(stream, seen, copies.rows(4096 * i++, few));
                   ops::add(stream, seen, added, seen);
                   at += round_up(n, 16) + 16;
                 }
               });
             side.result("all", all, same_bits()), side.result("copies", copies, same_bits());
           }},
          // Long enough that a queue that does not wait reads older values. The second piece reads the result of the first.
          {"side work in order and recorded", [](Side& side) {
             Stream& stream = side.stream();
             const Shape shape{2048, 2048};
             const Tensor a = side.gaussian(shape, 1), x = side.gaussian(shape, 2), y = side.poisoned(shape, DType::f32),
                          z = side.poisoned(shape, DType::f32), sum = side.poisoned(shape, DType::f32);
             Stream queue(stream);
             QueuedWork beside(queue);
             Replay replay;
             for (int run = 0; run < 4; ++run)
               replay.run(stream, {1}, [&] {
                 for (int i = 0; i < 8; ++i) ops::add(stream, x, a, x);
                 const SideWork::Piece piece = beside.begin(stream, [&](Stream& q) { ops::add(q, x, a, y); });
                 beside.begin(stream, [&](Stream& q) { ops::add(q, y, a, z); });
                 ops::add(stream, a, a, sum);
                 beside.join(stream, piece);
                 ops::add(stream, sum, y, sum);
                 beside.join(stream);
                 ops::add(stream, sum, z, x);
               });
             side.result("x", x, same_bits());
           }}};
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
