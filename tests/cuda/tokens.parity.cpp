#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/ops/embedding/embedding.hpp"
#include "tests/cuda/some_codes.hpp"

namespace octet::parity {
namespace {

// Ids with repetitions near and far; every fifth place as `special`, if that is not 0.
std::vector<std::int32_t> ids(std::int64_t n, std::int64_t vocabulary, std::int32_t special = 0) {
  std::vector<std::int32_t> out;
  for (std::int64_t t = 0; t < n; ++t)
    out.push_back(special != 0 && t % 5 == 3 ? special : std::int32_t(philox(9, std::uint64_t(t)).w[0] % std::uint32_t(vocabulary)));
  return out;
}

Case embedding(DType dtype, std::int64_t T, std::int64_t V, std::int64_t D, std::int64_t length, bool documents = false) {
  return {format("embedding {} T {} V {} D {} positions {}{}", dtype, T, V, D, length, documents ? " of documents" : ""), [=](Side& side) {
            const Tensor tokens = side.raw(ids(T, V), {T}), out = side.poisoned({T, D}, dtype);
            const Tensor positions = length > 0 ? side.gaussian({length, D}, 4) : Tensor{};
            const Tensor starts = documents ? side.raw(ops::random_document_starts(T, length, 5), {T}) : Tensor{};
            ops::embedding_forward(
                side.stream(),
                {.table = side.gaussian({V, D}, 1), .tokens = tokens, .out = out, .positions = positions, .document_starts = starts});
            const Tensor dtable = side.gaussian({V, D}, 2), dpositions = length > 0 ? side.gaussian({length, D}, 5) : Tensor{};
            ops::embedding_backward(side.stream(), {.dy = side.gaussian({T, D}, 3, dtype),
                                                    .tokens = tokens,
                                                    .dtable = dtable,
                                                    .dpositions = dpositions,
                                                    .document_starts = starts});
            side.result("out", out, same_bits()), side.result("dtable", dtable, same_bits());
            if (length > 0) side.result("dpositions", dpositions, same_bits());
          }};
}

Case embedding_of_codes(DType dtype, Storage storage, std::int64_t D) {
  return {format("embedding {} of {} D {}", dtype, storage, D), [=](Side& side) {
            const Stored table = some_codes(side, storage, {50, D});
            const Tensor out = side.poisoned({777, D}, dtype);
            ops::embedding_forward(
                side.stream(),
                {.table = table.codes, .tokens = side.raw(ids(777, 50), {777}), .out = out, .descale = table.tensor_descale()});
            side.result("out", out, same_bits());
          }};
}

// A row's sum of V exponentials is added in another order: V units relative, which the logarithm and the quotients pass on. The GPU's own
// exponentials are off by 5 units more.
Case cross_entropy(DType dtype, std::int64_t T, std::int64_t V, std::int64_t columns, bool gradient) {
  const float loss_scale = dtype == DType::f16 ? 0x1p10f : 1;
  return {format("cross_entropy {} T {} V {} of {} gradient {}", dtype, T, V, columns, gradient), [=](Side& side) {
            const Tensor logits = side.gaussian({T, columns}, 1, dtype, 4), losses = side.poisoned({T}, DType::f32);
            const Tensor sum = side.raw(std::vector<double>{0.5}, {1}), counted = side.raw(std::vector<std::int64_t>{3}, {1});
            ops::cross_entropy(side.stream(), {.logits = logits,
                                               .targets = side.raw(ids(T, V, -1), {T}),
                                               .vocabulary = V,
                                               .losses = losses,
                                               .loss_sum = sum,
                                               .counted = counted,
                                               .gradient_scale = 0.25f,
                                               .loss_scale = loss_scale != 1 ? side.from({loss_scale}, {1}) : Tensor{},
                                               .gradient = gradient});
            const Tensor mean = side.poisoned({1}, DType::f32);
            ops::mean_loss(side.stream(), sum, counted, mean);
            const double relative = double(V + 16) * 0x1p-24;
            side.result("logits", logits, within(gradient ? 0.25 * double(loss_scale) * relative : 0)),
                side.result("losses", losses, within(relative + 64 * 0x1p-24));
            side.result("sum", sum, within(double(T) * (relative + 64 * 0x1p-24))), side.result("counted", counted, same_bits());
            side.result("mean", mean, within(relative + 64 * 0x1p-24));
          }};
}

// Rows [first, first + V) of a table of 50.
Case embedding_of_rows(DType dtype, std::int64_t first, std::int64_t V, std::int64_t D) {
  return {
      format("embedding {} of rows {} to {} of 50, D {}", dtype, first, first + V, D), [=](Side& side) {
        const Tensor tokens = side.raw(ids(777, 50), {777}), out = side.poisoned({777, D}, dtype), dtable = side.gaussian({V, D}, 2);
        const ops::TableRows rows{first, 50};
        ops::embedding_forward(side.stream(), {.table = side.gaussian({V, D}, 1), .tokens = tokens, .out = out, .rows = rows});
        ops::embedding_backward(side.stream(), {.dy = side.gaussian({777, D}, 3, dtype), .tokens = tokens, .dtable = dtable, .rows = rows});
        side.result("out", out, same_bits()), side.result("dtable", dtable, same_bits());
      }};
}

// The same with positions, of the first of two members that share sequences of 2 `own` tokens.
Case embedding_of_parts(DType dtype, std::int64_t own, bool documents) {
  return {format("embedding {} of parts of {} tokens{}", dtype, own, documents ? " of documents" : ""), [=](Side& side) {
            const std::int64_t T = 6 * own, D = 72, whole = 2 * own;
            const SequencePart part = SequencePart::of_member(whole, 0, 2);
            std::vector<std::int32_t> starts;
            for (std::int64_t t = 0; t < T; ++t) starts.push_back(part.place(t % own, own) >= own ? std::int32_t(own) : 0);
            const Tensor tokens = side.raw(ids(T, 50), {T}), out = side.poisoned({T, D}, dtype), dtable = side.gaussian({20, D}, 2),
                         dpositions = side.gaussian({whole, D}, 5), places = documents ? side.raw(starts, {T}) : Tensor{};
            const ops::TableRows rows{20, 50};
            ops::embedding_forward(side.stream(), {.table = side.gaussian({20, D}, 1),
                                                   .tokens = tokens,
                                                   .out = out,
                                                   .positions = side.gaussian({whole, D}, 4),
                                                   .document_starts = places,
                                                   .rows = rows,
                                                   .part = part});
            ops::embedding_backward(side.stream(), {.dy = side.gaussian({T, D}, 3, dtype),
                                                    .tokens = tokens,
                                                    .dtable = dtable,
                                                    .dpositions = dpositions,
                                                    .document_starts = places,
                                                    .rows = rows,
                                                    .part = part});
            side.result("out", out, same_bits()), side.result("dtable", dtable, same_bits());
            side.result("dpositions", dpositions, same_bits());
          }};
}

// The columns of the second of two owners: from token `first` on.
Case cross_entropy_of_parts(DType dtype, std::int64_t T, std::int64_t V, std::int64_t columns, std::int64_t first) {
  return {format("cross_entropy {} of parts T {} V {} of {} from {}", dtype, T, V, columns, first), [=](Side& side) {
            const Tensor logits = side.gaussian({T, columns}, 1, dtype, 4), losses = side.poisoned({T}, DType::f32);
            const Tensor targets = side.raw(ids(T, first + V, -1), {T}), statistics = side.poisoned({2 * T, 3}, DType::f32);
            const Tensor sum = side.raw(std::vector<double>{0.5}, {1}), counted = side.raw(std::vector<std::int64_t>{3}, {1});
            ops::logit_statistics(
                side.stream(),
                {.logits = logits, .targets = targets, .vocabulary = V, .first = first, .statistics = statistics.rows(0, T)});
            ops::logit_statistics(side.stream(), {.logits = side.gaussian({T, first}, 8, dtype, 4),
                                                  .targets = targets,
                                                  .vocabulary = first,
                                                  .first = 0,
                                                  .statistics = statistics.rows(T, T)});
            ops::cross_entropy(side.stream(), {.logits = logits,
                                               .targets = targets,
                                               .vocabulary = V,
                                               .losses = losses,
                                               .loss_sum = sum,
                                               .counted = counted,
                                               .gradient_scale = 0.25f,
                                               .first = first,
                                               .parts = statistics});
            const double relative = double(V + 24) * 0x1p-24;
            side.result("logits", logits, within(0.25 * relative)), side.result("losses", losses, within(relative + 64 * 0x1p-24));
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t D : {1, 7, 64, 896})
      cases.push_back(embedding(dtype, 777, 50, D, 0)), cases.push_back(embedding(dtype, 96, 1000, D, 32)),
          cases.push_back(embedding(dtype, 960, 1000, D, 32, true));
    for (const Storage storage : {Storage::f16, Storage::e4m3_tensor})
      for (const std::int64_t D : {7, 12, 24, 896}) cases.push_back(embedding_of_codes(dtype, storage, D));
    for (const std::int64_t D : {7, 64}) cases.push_back(embedding_of_rows(dtype, 20, 30, D));
    for (const bool documents : {false, true}) cases.push_back(embedding_of_parts(dtype, 12, documents));
    cases.push_back(cross_entropy_of_parts(dtype, 37, 61, 64, 64)), cases.push_back(cross_entropy_of_parts(dtype, 20, 75968, 75968, 75968));
    cases.push_back(embedding(dtype, 5000, 3, 256, 0)), cases.push_back(embedding(dtype, 500, 3, 7, 0));
    for (const bool gradient : {false, true}) {
      cases.push_back(cross_entropy(dtype, 0, 5, 5, gradient)), cases.push_back(cross_entropy(dtype, 3, 1, 1, gradient));
      cases.push_back(cross_entropy(dtype, 37, 61, 64, gradient)), cases.push_back(cross_entropy(dtype, 64, 256, 256, gradient));
      cases.push_back(cross_entropy(dtype, 20, 50257, 50272, gradient)),
          cases.push_back(cross_entropy(dtype, 20, 151936, 151936, gradient));
    }
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
