#include "octet/ops/route/route.hpp"

#include "octet/ops/route/route.kernels.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t most_experts = 1024, most_groups = 64;

void check_f32(const Tensor& t, const Shape& wanted, const char* what) {
  check(t.dtype == DType::f32 && t.shape == wanted, "route: {} must be f32 {}, got {} {}", what, wanted, t.dtype, t.shape);
}

void check_chosen(const Tensor& t, std::int64_t tokens, std::int64_t choices) {
  check(t.dtype == DType::i32 && t.shape == Shape{tokens, choices}, "route: chosen must be i32 [{}, {}], got {} {}", tokens, choices,
        t.dtype, t.shape);
}

void check_logits(const Tensor& logits) {
  check(logits.shape.rank == 2 && logits.dtype == DType::f32 && logits.shape[1] > 0 && logits.shape[1] <= most_experts,
        "route: logits must be f32 [T, E] with 1 to {} experts, got {} {}", most_experts, logits.dtype, logits.shape);
}

void check_routing(const Routing& r, std::int64_t experts) {
  check(r.groups > 0 && r.groups <= most_groups && experts % r.groups == 0, "route: {} experts cannot be {} equal groups (at most {})",
        experts, r.groups, most_groups);
  check(r.kept_groups > 0 && r.kept_groups <= r.groups, "route: kept groups must be 1 to {}, got {}", r.groups, r.kept_groups);
  const std::int64_t size = experts / r.groups;
  check(r.choices > 0 && r.choices <= r.kept_groups * size, "route: choices must be 1 to {}, the experts of {} groups, got {}",
        r.kept_groups * size, r.kept_groups, r.choices);
  check(r.kept_groups == r.groups || r.group_score == Routing::GroupScore::largest || size > 1,
        "route: groups of one expert have no two largest");
}

// The places of rows in the S sequences of a table, with their length.
SequenceRows placed(const SequenceRows& rows, const Tensor& table, std::int64_t tokens, std::int64_t experts, const char* what) {
  const bool all = rows.length == 0;
  check(table.shape.rank == 2 && table.dtype == DType::f32 && table.shape[1] == experts && table.shape[0] > 0 &&
            (!all || tokens % table.shape[0] == 0),
        "route: {} must be f32 [S, {}] for S equal sequences of {} tokens, got {} {}", what, experts, tokens, table.dtype, table.shape);
  const SequenceRows out = all ? SequenceRows{0, tokens / table.shape[0]} : rows;
  check(out.first >= 0 && out.length >= 0 && out.first + tokens <= out.length * table.shape[0],
        "route: {} tokens from {} on are not in {} sequences of {}", tokens, out.first, table.shape[0], out.length);
  return out;
}

}  // namespace

void route_forward(Stream& stream, const Routing& r, const RouteForward& a) {
  check_logits(a.logits);
  const std::int64_t tokens = a.logits.shape[0], experts = a.logits.shape[1];
  check_routing(r, experts);
  if (a.bias) check_f32(a.bias, {experts}, "bias");
  check_chosen(a.chosen, tokens, r.choices);
  check_f32(a.weights, {tokens, r.choices}, "weights"), check_f32(a.scores, a.logits.shape, "scores");
  stream.count({.ops = 1, .bytes = 2.0 * double(a.logits.bytes()) + 2.0 * double(a.weights.bytes())});
  OCTET_LAUNCH(stream, route_forward, r, a);
}

void route_backward(Stream& stream, const Routing& r, const RouteBackward& of) {
  RouteBackward a = of;
  check_logits(a.logits);
  const std::int64_t tokens = a.logits.shape[0], experts = a.logits.shape[1];
  check_routing(r, experts);
  check_chosen(a.chosen, tokens, r.choices);
  check_f32(a.scores, a.logits.shape, "scores"), check_f32(a.dlogits, a.logits.shape, "dlogits");
  check_f32(a.dweights, {tokens, r.choices}, "dweights");
  if (a.dscores) a.rows = placed(a.rows, a.dscores, tokens, experts, "dscores");
  if (a.z_scale) check_f32(a.z_scale, {1}, "z_scale");
  stream.count({.ops = 1, .bytes = 3.0 * double(a.logits.bytes()) + 2.0 * double(a.dweights.bytes())});
  OCTET_LAUNCH(stream, route_backward, r, a);
}

void route_load(Stream& stream, const RouteLoad& of) {
  RouteLoad a = of;
  check_logits(a.scores);
  const std::int64_t tokens = a.scores.shape[0], experts = a.scores.shape[1];
  check(a.chosen.shape.rank == 2, "route: chosen must be i32 [{}, K], got {}", tokens, a.chosen.shape);
  check_chosen(a.chosen, tokens, a.chosen.shape[1]);
  a.rows = placed(a.rows, a.counts, tokens, experts, "counts");
  check_f32(a.sums, a.counts.shape, "sums");
  stream.count({.ops = 1, .bytes = double(a.scores.bytes()) + double(a.chosen.bytes())});
  const Scope scope(stream);
  Tensor strips;
  if (stream.target().device == Device::cuda) {
    strips = stream.empty({2 * a.counts.shape[0], ceil_div(a.rows.length, route_strip), experts}, DType::f32, Lifetime::scratch,
                          Category::workspace);
  }
  OCTET_LAUNCH(stream, route_load, a, strips);
}

}  // namespace octet::ops
