#include "octet/nn/expert_exchange.hpp"

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_codes/gather_codes.hpp"

namespace octet::nn {

ExpertExchange::Visit AllExperts::begin(Stream& stream, const Choices& c) {
  const Shape& shape = c.chosen.shape;
  const Visit visit{.map = ops::empty_expert_map(stream, shape[0], shape[1], c.experts, c.tile, c.of_map), .weights = c.weights};
  ops::expert_map(stream, c.chosen, visit.map);
  return visit;
}

void AllExperts::gather(Stream& stream, const Tensor& x, const Visit& visit, ops::Sink& rows) {
  ops::gather_encoded(stream, x, visit.map, rows);
}

void AllExperts::combine(Stream& stream, const Tensor& rows, const Visit& visit, const Tensor& y, bool add) {
  ops::combine_rows(stream, rows, visit.map, y, add);
}

ExpertExchange& all_experts() {
  static AllExperts all;
  return all;
}

Cut own_experts(const ExpertExchange& exchange, std::int64_t experts, std::int64_t out, std::int64_t in) {
  const IndexRange own = exchange.own(experts);
  return Cut::of_rows({experts * out, in}, own.first * out, own.count * out);
}

}  // namespace octet::nn
