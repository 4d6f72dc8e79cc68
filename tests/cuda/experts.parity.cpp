#include <numeric>

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_codes/gather_codes.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/route/route.hpp"
#include "octet/ops/visits/visits.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.hpp"
#include "octet/tensor/replay.hpp"
#include "tests/cuda/activation.hpp"
#include "tests/cuda/experts.hpp"

// Routing, maps and gathered rows have the CPU's bits; so has weighted SwiGLU, except the sums of its weights' gradient.

namespace octet::parity {
namespace {

using Score = ops::Routing::Score;
using GroupScore = ops::Routing::GroupScore;

Case route(std::string name, std::int64_t T, std::int64_t E, const ops::Routing& r, bool biased, bool relative, bool odd = false) {
  return {format("route {} T {} E {} K {}", name, T, E, r.choices), [=](Side& side) {
            Stream& s = side.stream();
            std::vector<float> u = testing::gaussian(std::size_t(T * E), 1, 2);
            if (odd)
              for (std::size_t i = 0; i < u.size(); i += 3 * std::size_t(E) + 1) u[i] = i % 2 ? NAN : INFINITY;
            else
              for (std::size_t i = 0; i + 1 < u.size(); i += 5) u[i] = u[i + 1];  // equal scores
            const std::int64_t S = T % 2 == 0 && T > 0 ? 2 : 1;
            const Tensor logits = side.from(u, {T, E}), bias = biased ? side.gaussian({E}, 2, DType::f32, 0.1) : Tensor{};
            const Tensor chosen = side.poisoned({T, r.choices}, DType::i32), weights = side.poisoned({T, r.choices}, DType::f32),
                         scores = side.poisoned({T, E}, DType::f32), dlogits = side.poisoned({T, E}, DType::f32);
            const Tensor counts = side.gaussian({S, E}, 5), sums = side.gaussian({S, E}, 6);
            ops::route_forward(s, r, {.logits = logits, .bias = bias, .chosen = chosen, .weights = weights, .scores = scores});
            ops::route_backward(s, r,
                                {.logits = logits,
                                 .scores = scores,
                                 .chosen = chosen,
                                 .dweights = side.gaussian({T, r.choices}, 3),
                                 .dscores = biased ? side.gaussian({S, E}, 4) : Tensor{},
                                 .dlogits = dlogits,
                                 .z_loss = relative ? 0.01f : 0,
                                 .relative = relative});
            ops::route_load(s, {.chosen = chosen, .scores = scores, .counts = counts, .sums = sums, .relative = relative});
            // The rows of a member whose first token is within a sequence, and whose last one is, too.
            const ops::SequenceRows part{.first = 3, .length = ceil_div(T + 3, S) + 1};
            const Tensor of_part = side.poisoned({T, E}, DType::f32), counted = side.gaussian({S, E}, 5), added = side.gaussian({S, E}, 6);
            ops::route_backward(s, r,
                                {.logits = logits,
                                 .scores = scores,
                                 .chosen = chosen,
                                 .dweights = side.gaussian({T, r.choices}, 3),
                                 .dscores = side.gaussian({S, E}, 4),
                                 .dlogits = of_part,
                                 .relative = relative,
                                 .rows = part});
            ops::route_load(s, {.chosen = chosen, .scores = scores, .counts = counted, .sums = added, .relative = relative, .rows = part});
            side.result("dlogits of a part", of_part, same_bits());
            side.result("counts of a part", counted, same_bits()), side.result("sums of a part", added, same_bits());
            side.result("chosen", chosen, same_bits()), side.result("weights", weights, same_bits());
            side.result("scores", scores, same_bits()), side.result("dlogits", dlogits, same_bits());
            side.result("counts", counts, same_bits()), side.result("sums", sums, same_bits());
          }};
}

void add_routes(std::vector<Case>& cases) {
  for (const auto [T, E, K] : {std::array<std::int64_t, 3>{0, 8, 2}, {1, 1, 1}, {7, 3, 2}, {129, 64, 8}, {1000, 128, 8}, {300, 1000, 4}})
    for (const bool biased : {false, true}) {
      cases.push_back(route("softmax", T, E, {.choices = K}, biased, biased));
      cases.push_back(route("softmax odd", T, E, {.choices = K, .normalize = true, .scaling = 1.5f}, biased, biased, true));
      cases.push_back(route("sigmoid", T, E, {.score = Score::sigmoid, .choices = K, .normalize = true, .floor = 1e-20f, .scaling = 2.5f},
                            biased, true));
    }
  ops::Routing grouped{.score = Score::sigmoid, .group_score = GroupScore::two_largest, .choices = 8, .groups = 8, .kept_groups = 4};
  grouped.normalize = true;
  cases.push_back(route("in turn", 129, 64, {.choices = 8, .in_turn = true}, false, false));
  cases.push_back(route("groups by two", 500, 256, grouped, true, true));
  cases.push_back(route("groups by one", 500, 64, {.choices = 6, .groups = 8, .kept_groups = 3, .scaling = 16}, false, false));
}

Case map_case(const Choosing& c) {
  return {"expert_map " + c.name(), [=](Side& side) {
            const ops::ExpertMap map = map_on(side, c);
            side.result("row", map.row, same_bits()), side.result("source", map.source, same_bits());
            side.result("begin", map.groups.begin, same_bits()), side.result("count", map.groups.count, same_bits());
          }};
}

Case rows_case(const Choosing& c, std::int64_t cols, DType dtype) {
  return {format("gather_rows and combine_rows {} {} x {}", c.name(), dtype, cols), [=](Side& side) {
            const ops::ExpertMap map = map_on(side, c);
            const Tensor x = side.gaussian({c.tokens, cols}, 1, dtype);
            each_sink(side, {map.rows(), cols}, dtype, [&](Stream& s, ops::Sink& y) { ops::gather_rows(s, x, map, y); });
            const Tensor from = rows_of_tokens(side, map, cols, 2, dtype), y = side.poisoned({c.tokens, cols}, dtype),
                         more = side.gaussian({c.tokens, cols}, 3, dtype);
            ops::combine_rows(side.stream(), from, map, y), ops::combine_rows(side.stream(), from, map, more, true);
            side.result("combined", y, same_bits()), side.result("added", more, same_bits());
          }};
}

// Health counts tokens or rows, as a device encodes them.
Case codes_case(const Choosing& c, std::int64_t cols, DType dtype) {
  return {format("gather_encoded {} {} x {}", c.name(), dtype, cols), [=](Side& side) {
            const ops::ExpertMap map = map_on(side, c);
            const Tensor x = side.gaussian({c.tokens, cols}, 1, dtype);
            for (const Kind& kind : kinds(dtype))
              for (const Wanted& want : std::vector<Wanted>{{true, false}, {true, true}, {false, true}}) {
                SinkOnSide y(side, kind, {map.rows(), cols}, dtype, want);
                ops::gather_encoded(side.stream(), x, map, y.sink);
                const std::string name = kind.name + (want.rows ? want.cols ? " both" : " rows" : " columns");
                if (!y.sink.spec.quantizes()) side.result(name, y.sink.plain, same_bits());
                else side.result(name + " amax", y.amax, same_bits());
                for (const Quantized* q : {&y.sink.codes.rows, &y.sink.codes.cols}) {
                  if (!y.sink.spec.quantizes() || !*q) continue;
                  const std::string part = name + (q == &y.sink.codes.rows ? ": row" : ": column");
                  side.result(part + " codes", q->codes, same_bits()), side.result(part + " descales", q->descales, same_bits());
                }
              }
          }};
}

Case swiglu_case(const Choosing& c, std::int64_t cols, DType dtype, float limit) {
  return {format("weighted_swiglu {} {} x {} limit {}", c.name(), dtype, cols, limit), [=](Side& side) {
            const ops::ExpertMap map = map_on(side, c);
            const Tensor x = rows_of_tokens(side, map, 2 * cols, 1, dtype), dy = rows_of_tokens(side, map, cols, 2, dtype),
                         w = side.gaussian(map.row.shape, 3), dw = side.poisoned(map.row.shape, DType::f32);
            const auto backward = [&](const ops::Saved& from) {
              each_sink(side, x.shape, dtype, [&](Stream& s, ops::Sink& dx) {
                ops::weighted_swiglu_backward(s, {.dy = dy, .x = from, .w = w, .map = map, .limit = limit, .dw = dw}, dx);
              });
              side.result("dw", dw, within_share_of_largest(0x1p-18));
            };
            each_sink(side, dy.shape, dtype, [&](Stream& s, ops::Sink& y) { ops::weighted_swiglu_forward(s, x, w, map, limit, y); });
            backward(x);
            if (dtype == DType::f16 || cols % ops::saved_block != 0) return;
            ops::Sink saved = ops::saved_sink(side.stream(), x, ops::saved_spec(), Lifetime::run);
            clear(side.stream(), saved.codes.rows.codes), clear(side.stream(), saved.codes.rows.descales);
            SinkOnSide y(side, kinds(dtype)[7], dy.shape, dtype, {.count = false});
            ops::weighted_swiglu_forward(side.stream(), x, w, map, limit, y.sink, &saved);
            y.declare(side, "saving", false);
            const ops::Saved codes(saved.codes.rows, dtype);
            side.result("codes", codes.codes.codes, same_bits());
            backward(codes);
          }};
}

// Routing changes between replays of one graph: the map, gathered rows and their combination are those of each routing.
Case replayed() {
  return {"experts whose routing changes between replays", [](Side& side) {
            Stream& s = side.stream();
            constexpr std::int64_t T = 300, E = 8, K = 2, C = 256;
            const ops::Routing r{.choices = K};
            const Tensor logits = side.gaussian({T, E}, 1), x = side.gaussian({T, C}, 2, DType::bf16);
            const Tensor chosen = side.poisoned({T, K}, DType::i32), weights = side.poisoned({T, K}, DType::f32),
                         scores = side.poisoned({T, E}, DType::f32), y = side.poisoned({T, C / 2}, DType::bf16);
            const ops::ExpertMap map = ops::empty_expert_map(s, T, K, E, 128, Lifetime::run);
            ops::Sink rows = ops::make_sink(s, {.format = DType::bf16},
                                            {.shape = {map.rows(), C}, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
            ops::Sink h = ops::make_sink(s, {.format = DType::bf16},
                                         {.shape = {map.rows(), C / 2}, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
            Replay replay;
            for (int run = 0; run < 5; ++run) {
              // All tokens on two experts, then by chance, then skewed.
              std::vector<float> u = testing::gaussian(std::size_t(T * E), std::uint64_t(run), 1);
              for (std::size_t i = 0; i < u.size(); ++i) u[i] += run % 2 == 0 && i % E < 2 ? 50.0f : float(i % E) * float(run);
              upload(s, u.data(), logits);
              replay.run(s, {1}, [&] {
                ops::route_forward(s, r, {.logits = logits, .chosen = chosen, .weights = weights, .scores = scores});
                ops::expert_map(s, chosen, map);
                ops::gather_rows(s, x, map, rows);
                ops::weighted_swiglu_forward(s, rows.plain, weights, map, 0, h);
                ops::combine_rows(s, h.plain, map, y);
              });
              const Tensor kept = s.empty(y.shape, y.dtype, Lifetime::run), counts = s.empty({E}, DType::i32, Lifetime::run);
              copy(s, y, kept), copy(s, map.groups.count, counts);
              side.result(format("y of run {}", run), kept, same_bits()), side.result(format("counts of run {}", run), counts, same_bits());
            }
          }};
}

// The rows that go to other members: their map has choices that are none.
Case visits_case(const Choosing& c, std::int64_t members) {
  return {format("visits of {} members, {}", members, c.name()), [=](Side& side) {
            Stream& s = side.stream();
            const std::int64_t T = c.tokens, L = c.experts / members, C = std::min(c.choices, members), J = std::min(c.choices, L);
            const Tensor chosen = side.raw(chosen_of(c), {T, c.choices}), visited = side.poisoned({T, C}, DType::i32);
            ops::visited_members(s, chosen, L, visited);
            const ops::ExpertMap map = ops::empty_expert_map(s, T, C, members, 1, Lifetime::run);
            ops::expert_map(s, visited, map);
            const std::int64_t n = std::max<std::int64_t>(map.rows(), 1);
            const ops::PackedChoices packed{
                chosen, visited, map.row, L, s.zeros({n, J}, DType::i32, Lifetime::run), s.zeros({n, J}, DType::f32, Lifetime::run)};
            ops::pack_choices(s, packed, side.gaussian({T, c.choices}, 3));
            const Tensor back = side.poisoned({T, c.choices}, DType::f32), y = side.poisoned({T, 40}, DType::bf16);
            ops::unpack_weights(s, packed, back);
            ops::combine_rows(s, side.gaussian({map.rows(), 40}, 4, DType::bf16), map, y);
            side.result("visited", visited, same_bits()), side.result("row", map.row, same_bits());
            side.result("experts", packed.experts, same_bits()), side.result("weights", packed.weights, same_bits());
            side.result("weights back", back, same_bits()), side.result("y", y, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases;
  add_routes(cases);
  for (const std::int64_t members : {2, 4, 8}) {
    cases.push_back(visits_case({1000, 8, 64, 128, 64}, members)), cases.push_back(visits_case({129, 2, 64, 128, 64}, members));
    cases.push_back(visits_case({0, 2, 8, 16, 8}, members));
  }
  for (const Choosing& c : choosings()) cases.push_back(map_case(c));
  const Choosing small{50, 2, 4, 16, 4}, whole{150, 2, 4, 128, 3}, none{0, 2, 4, 128, 4};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    cases.push_back(rows_case(none, 64, dtype)), cases.push_back(rows_case(small, 7, dtype));
    cases.push_back(rows_case(whole, 264, dtype));
    for (const std::int64_t cols : {7, 264, 272}) cases.push_back(codes_case(cols == 7 ? small : whole, cols, dtype));
    cases.push_back(codes_case(none, 64, dtype));
    for (const float limit : {0.0f, 2.0f}) {
      cases.push_back(swiglu_case(small, 7, dtype, limit)), cases.push_back(swiglu_case(none, 64, dtype, limit));
      cases.push_back(swiglu_case(whole, 96, dtype, limit)), cases.push_back(swiglu_case(whole, 256, dtype, limit));
    }
  }
  cases.push_back(replayed());
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
