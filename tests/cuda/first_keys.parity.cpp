#include "octet/ops/first_keys/first_keys.hpp"

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/attention/documents.testing.hpp"
#include "tests/cuda/parity.hpp"

// Integers: the same bits. Attention within the window has the bound of attention within documents (attention.parity.cpp): FP32 sums of the
// keys that a token reads, with scores of d products each, whose errors are factors of exponentials.

namespace octet::parity {
namespace {

using testing::dot_bound, testing::unit_f32;

Case keys_of(std::int64_t sequence, std::int64_t window, bool documents, const SequencePart& part) {
  return {format("first_keys {} window {} documents {} part {}", sequence, window, documents, bool(part)), [=](Side& side) {
            const std::int64_t tokens = 3 * sequence;
            const Tensor starts = documents ? side.raw(ops::random_document_starts(tokens, sequence, 9), {tokens}) : Tensor{},
                         keys = side.poisoned({tokens}, DType::i32);
            ops::first_keys(side.stream(), {.starts = starts, .window = window, .sequence = sequence, .part = part, .keys = keys});
            side.result("keys", keys, same_bits());
          }};
}

Case attention_within(std::int64_t window) {
  return {format("attention within a window of {}", window), [=](Side& side) {
            const ops::QkvShape heads{4, 2, 256, 150};
            const Tensor keys = side.poisoned({300}, DType::i32), qkv = side.gaussian({300, heads.columns()}, 1),
                         o = side.poisoned({300, heads.out_columns()}, DType::f32), lse = side.poisoned({4, 300}, DType::f32);
            ops::first_keys(side.stream(), {.starts = {}, .window = window, .sequence = 150, .keys = keys});
            ops::attention_forward(side.stream(), {.qkv = qkv, .o = o, .lse = lse, .heads = heads, .document_starts = keys});
            const double error = dot_bound(260, unit_f32, 16 * 16);
            side.result("o", o, within(2 * 5 * (2 * std::expm1(2 * error) + dot_bound(300, unit_f32, 1))));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const std::int64_t window : {1, 17, 1000}) {
    for (const bool documents : {false, true}) cases.push_back(keys_of(150, window, documents, {}));
    cases.push_back(keys_of(64, window, false, SequencePart::of_member(256, 1, 2)));
    cases.push_back(attention_within(window));
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
