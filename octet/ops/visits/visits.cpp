#include "octet/ops/visits/visits.hpp"

#include "octet/ops/visits/visits.kernels.hpp"

namespace octet::ops {
namespace {

void check_matrix(const char* op, const char* what, const Tensor& x, DType type, std::int64_t rows, std::int64_t columns) {
  check(x.dtype == type && x.shape == Shape{rows, columns}, "{}: {} must be {} [{}, {}], got {} {}", op, what, type, rows, columns, x.dtype,
        x.shape);
}

VisitSizes sizes_of(const char* op, const Tensor& chosen, const Tensor& visited, std::int64_t experts_of_member) {
  check(chosen.shape.rank == 2 && chosen.dtype == DType::i32 && chosen.shape[1] > 0 && visited.shape.rank == 2 && experts_of_member > 0,
        "{}: wants choices i32 [T, K], visited members [T, C] and experts of a member, got {} {}, {} and {}", op, chosen.dtype,
        chosen.shape, visited.shape, experts_of_member);
  const VisitSizes out{chosen.shape[1], visited.shape[1], std::min(chosen.shape[1], experts_of_member), experts_of_member};
  check_matrix(op, "visited members", visited, DType::i32, chosen.shape[0], out.members);
  check(out.members > 0 && out.members <= out.choices, "{}: a token of {} choices visits 1 to {} members, got {}", op, out.choices,
        out.choices, out.members);
  return out;
}

VisitSizes sizes_of(const char* op, const PackedChoices& p, const Tensor& all) {
  const VisitSizes out = sizes_of(op, p.chosen, p.visited, p.experts_of_member);
  check_matrix(op, "rows", p.row, DType::i32, p.chosen.shape[0], out.members);
  check_matrix(op, "weights of tokens", all, DType::f32, p.chosen.shape[0], out.choices);
  check_matrix(op, "packed weights", p.weights, DType::f32, p.weights.shape[0], out.packed);
  if (p.experts) check_matrix(op, "packed experts", p.experts, DType::i32, p.weights.shape[0], out.packed);
  return out;
}

}  // namespace

void visited_members(Stream& stream, const Tensor& chosen, std::int64_t experts_of_member, const Tensor& visited) {
  const VisitSizes sizes = sizes_of("visited_members", chosen, visited, experts_of_member);
  stream.count({.ops = 1, .bytes = double(chosen.bytes() + visited.bytes())});
  OCTET_LAUNCH(stream, visited_members, chosen, visited, sizes);
}

void pack_choices(Stream& stream, const PackedChoices& p, const Tensor& from) {
  const VisitSizes sizes = sizes_of("pack_choices", p, from);
  check(bool(p.experts), "pack_choices: wants memory for the packed experts");
  stream.count({.ops = 1, .bytes = double(p.chosen.bytes() + from.bytes() + p.visited.bytes()) * 2});
  OCTET_LAUNCH(stream, pack_choices, p, from, sizes);
}

void unpack_weights(Stream& stream, const PackedChoices& p, const Tensor& to) {
  const VisitSizes sizes = sizes_of("unpack_weights", p, to);
  stream.count({.ops = 1, .bytes = double(p.chosen.bytes() + to.bytes() + p.visited.bytes()) * 2});
  OCTET_LAUNCH(stream, unpack_weights, p, to, sizes);
}

}  // namespace octet::ops
