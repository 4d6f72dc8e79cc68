#include "octet/ops/dropout/dropout.hpp"

#include "octet/tensor/replay.hpp"
#include "tests/cuda/parity.hpp"

// Equal draws on both backends, in the order of values and in a replayed graph.

namespace octet::parity {
namespace {

Case dropped(DType dtype, bool last, bool accumulate, std::int64_t columns, SequencePart part) {
  return {format("dropout {} of {} columns, tokens last {}, accumulate {}, part {}", dtype, columns, last, accumulate, bool(part)),
          [=](Side& side) {
            const std::int64_t tokens = 96;
            const Shape shape = last ? Shape{columns, tokens} : Shape{tokens, columns};
            const Tensor x = side.gaussian(shape, 1, dtype), y = side.gaussian(shape, 2, dtype);
            ops::dropout(side.stream(), {.x = x,
                                         .y = y,
                                         .tokens_last = last,
                                         .accumulate = accumulate,
                                         .probability = 0.3,
                                         .key = 0x123456789ABCDEFu,
                                         .numbers = side.raw(std::vector<std::int64_t>{1, 2, 3}, {ops::dropout_numbers}),
                                         .sequence = 32,
                                         .part = part,
                                         .first_column = 6,
                                         .member = int(accumulate),
                                         .members = 2});
            side.result("y", y, same_bits());
          }};
}

Case replayed() {
  return {"dropout in a replayed graph", [](Side& side) {
            const Tensor x = side.gaussian({64, 128}, 1, DType::bf16), y = side.from(std::vector<float>(64 * 128), {64, 128}, DType::bf16),
                         numbers = side.raw(std::vector<std::int64_t>{1, 0, 0}, {ops::dropout_numbers});
            Replay replay;
            for (std::int64_t i = 0; i < 6; ++i) {
              const std::int64_t values[] = {1, i / 2, i % 2};
              upload(side.stream(), values, numbers);
              replay.run(side.stream(), {1}, [&] {
                ops::dropout(side.stream(),
                             {.x = x, .y = y, .accumulate = true, .probability = 0.5, .key = 8, .numbers = numbers, .sequence = 64});
              });
            }
            side.result("y", y, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases{replayed()};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool last : {false, true})
      for (const bool accumulate : {false, true})
        for (const std::int64_t columns : {1, 7, 4096})
          cases.push_back(dropped(dtype, last, accumulate, columns, columns == 7 ? SequencePart{64, 16, 32} : SequencePart{}));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
