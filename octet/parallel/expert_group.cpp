#include "octet/parallel/expert_group.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/ops/visits/visits.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::parallel {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t(0)); }

std::vector<std::int64_t> times(std::vector<std::int64_t> counts, std::int64_t columns) {
  for (std::int64_t& n : counts) n *= columns;
  return counts;
}

Tensor flat_tensor(const Tensor& x) { return x.reshaped({x.count()}); }

// Values of a row that share a scale.
constexpr std::int64_t block = storage_block;

ops::PackedChoices packed(const nn::ExpertExchange::Choices& c, const nn::ExpertExchange::Leaving& l, const Tensor& experts,
                          const Tensor& weights) {
  const std::int64_t members = std::int64_t(l.out.size());
  return {.chosen = c.chosen,
          .visited = l.visited,
          .row = l.rows.row,
          .experts_of_member = c.experts / members,
          .experts = experts,
          .weights = weights};
}

}  // namespace

bool travels_as_codes(ExpertWire wire, const ops::QuantizeSpec& spec, std::int64_t columns) {
  if (columns % block != 0) return false;
  if (wire != ExpertWire::recipe) return wire == ExpertWire::e4m3;
  return spec.format == DType::e4m3 && spec.rule == ScaleRule::power_of_two && spec.rows.rows == 1 && spec.rows.cols == block;
}

double visit_chance(std::int64_t choices, std::int64_t experts, std::int64_t experts_of_rank) {
  double none = 1;
  for (std::int64_t k = 0; k < choices; ++k) none *= std::max(0.0, double(experts - experts_of_rank - k) / double(experts - k));
  return 1 - none;
}

// Rows of the worst choice, or of ranks that have more tokens than this one, as in an evaluation's last batch.
std::int64_t ExpertGroup::room(const Leaving& l) const { return std::max(members() * l.visited.shape[0], sum(l.in)); }

Tensor ExpertGroup::arriving(Stream& stream, const Leaving& l, std::int64_t columns, DType type, Region region) const {
  return stream.empty({room(l), columns}, type, region, Category::activations).rows(0, sum(l.in));
}

// A plan does not know what tokens choose.
void ExpertGroup::exchange_counts(Stream& stream, const Choices& c, Leaving& l) {
  const Scope scope(stream);
  const Tensor &out = l.rows.groups.count, in = stream.empty(out.shape, DType::i32);
  ranks_.all_to_all(stream, out, in);
  ranks_.finish(stream);
  const std::size_t n = std::size_t(members());
  std::vector<std::int32_t> sent(n), received(n);
  if (stream.device() == Device::null) {
    const double rows = double(c.chosen.shape[0]) * visit_chance(c.chosen.shape[1], c.experts, own(c.experts).count);
    std::ranges::fill(sent, std::int32_t(std::lround(rows))), std::ranges::fill(received, std::int32_t(std::lround(rows)));
  } else {
    download(stream, out, sent.data()), download(stream, in, received.data());
  }
  l.out.assign(sent.begin(), sent.end()), l.in.assign(received.begin(), received.end());
}

ExpertGroup::Visit ExpertGroup::begin(Stream& stream, const Choices& c) {
  const std::int64_t T = c.chosen.shape[0], K = c.chosen.shape[1], L = own(c.experts).count;
  const std::int64_t C = std::min<std::int64_t>(K, members()), J = std::min(K, L);
  Visit v;
  Leaving& l = v.leaving;
  l.visited = stream.empty({T, C}, DType::i32, c.keep, Category::activations);
  l.rows = ops::empty_expert_map(stream, T, C, members(), 1, c.keep);
  ops::visited_members(stream, c.chosen, L, l.visited);
  ops::expert_map(stream, l.visited, l.rows);
  exchange_counts(stream, c, l);
  v.weights = arriving(stream, l, J, DType::f32, c.keep);
  v.map = ops::empty_expert_map(stream, room(l), J, L, c.tile, c.of_map);
  v.map.row = v.map.row.rows(0, sum(l.in));
  v.map.groups.counted = ops::rows_of_experts(T, K, L, c.tile);
  const Scope scope(stream);
  const auto leaving = [&](DType type) { return stream.empty({l.rows.rows(), J}, type).rows(0, sum(l.out)); };
  const Tensor experts = leaving(DType::i32), weights = leaving(DType::f32), chosen = arriving(stream, l, J, DType::i32);
  ops::pack_choices(stream, packed(c, l, experts, weights), c.weights);
  send(stream, experts, chosen, l), send(stream, weights, v.weights, l);
  ops::expert_map(stream, chosen, v.map);
  return v;
}

// While exchanges of two passes are under way, those begun first are finished first, on every rank.
void ExpertGroup::exchange(Stream& stream, std::initializer_list<Parts> all, Turns::Exchange kind) const {
  if (!turns_.running()) {
    for (const Parts& p : all) ranks_.all_to_all(stream, flat_tensor(p.from), p.sent, flat_tensor(p.to), p.received);
    return;
  }
  struct Begun {  // of memory that is freed after an error
    ~Begun() {
      if (!finished) ranks.withdraw_sends();
    }
    comm::Communicator& ranks;
    std::vector<comm::BegunExchange> exchanges = {};
    bool finished = false;
  };
  Begun begun{ranks_};
  for (const Parts& p : all)
    begun.exchanges.push_back(ranks_.begin_all_to_all(stream, flat_tensor(p.from), p.sent, flat_tensor(p.to), p.received));
  turns_.pass(kind);
  for (const comm::BegunExchange& e : begun.exchanges) ranks_.finish_all_to_all(e);
  begun.finished = true;
}

void ExpertGroup::send(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const std::int64_t columns = from.shape[1];
  ranks_.all_to_all(stream, flat_tensor(from), times(l.out, columns), flat_tensor(to), times(l.in, columns));
}

void ExpertGroup::send_back(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const std::int64_t columns = from.shape[1];
  ranks_.all_to_all(stream, flat_tensor(from), times(l.in, columns), flat_tensor(to), times(l.out, columns));
}

void ExpertGroup::send_codes(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const Scope scope(stream);
  const std::int64_t columns = from.shape[1];
  const auto room_for = [&](std::int64_t rows, const Tensor& x) {
    return empty_stored(stream, {rows * columns}, Storage::e4m3).part(0, x.count());
  };
  const Stored out = room_for(l.rows.rows(), from), in = room_for(room(l), to);
  ops::convert_stored(stream, Stored::plain(flat_tensor(from)), out);
  const auto parts = [&](const Tensor& from_here, const Tensor& to_here, std::int64_t of_row) {
    return Parts{from_here, to_here, times(l.out, of_row), times(l.in, of_row)};
  };
  exchange(stream, {parts(out.codes, in.codes, columns), parts(out.scales, in.scales, columns / block)}, Turns::Exchange::dispatch);
  ops::convert_stored(stream, in, Stored::plain(flat_tensor(to)));
}

void ExpertGroup::gather(Stream& stream, const Tensor& x, const Visit& visit, ops::Sink& rows) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const std::int64_t columns = x.shape[1];
  ops::Sink leaving = ops::make_sink(stream, {.format = x.dtype}, {.shape = {l.rows.rows(), columns}, .dtype = x.dtype});
  ops::gather_rows(stream, x, l.rows, leaving);
  const Tensor from = leaving.plain.rows(0, sum(l.out)), to = arriving(stream, l, columns, x.dtype);
  if (travels_as_codes(wire_, rows.spec, columns)) send_codes(stream, from, to, l);
  else exchange(stream, {{from, to, times(l.out, columns), times(l.in, columns)}}, Turns::Exchange::dispatch);
  ops::gather_rows(stream, to, visit.map, rows);
}

void ExpertGroup::combine(Stream& stream, const Tensor& rows, const Visit& visit, const Tensor& y, bool add) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const Tensor sums = arriving(stream, l, y.shape[1], y.dtype), back = stream.empty({l.rows.rows(), y.shape[1]}, y.dtype);
  ops::combine_rows(stream, rows, visit.map, sums);
  const Tensor arrived = back.rows(0, sum(l.out));
  exchange(stream, {{sums, arrived, times(l.in, y.shape[1]), times(l.out, y.shape[1])}}, Turns::Exchange::combine);
  ops::combine_rows(stream, back, l.rows, y, add);
}

Tensor ExpertGroup::weights_here(Stream& stream, const Visit& visit, const Tensor&) const {
  return arriving(stream, visit.leaving, visit.weights.shape[1], DType::f32);
}

void ExpertGroup::finish(Stream& stream, const Tensor& here, const Choices& c, const Visit& visit, const Tensor& all) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const Tensor own = stream.empty({l.rows.rows(), here.shape[1]}, DType::f32).rows(0, sum(l.out));
  send_back(stream, here, own, l);
  ops::unpack_weights(stream, packed(c, l, {}, own), all);
}

std::unique_ptr<nn::ExpertExchange> experts_of(comm::Communicator& ranks, ExpertWire wire, Turns& turns) {
  if (ranks.size() == 1) return std::make_unique<nn::AllExperts>();
  return std::make_unique<ExpertGroup>(ranks, wire, turns);
}

}  // namespace octet::parallel
