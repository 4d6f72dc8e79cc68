#include "octet/parallel/expert_group.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/expert_map/known_choices.hpp"
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
  const auto [first, count] = l.now.tokens;
  return {.chosen = c.chosen.rows(first, count),
          .visited = l.visited.rows(first, count),
          .row = l.rows.row,
          .experts_of_member = c.experts / std::int64_t(l.now.out.size()),
          .experts = experts,
          .weights = weights};
}

// How often each of the numbers from 0 on is chosen.
void count_choices(Stream& stream, const Tensor& chosen, const Tensor& counts) {
  const Scope scope(stream);
  const std::int64_t groups = counts.shape[0];
  const auto ints = [&](Shape shape) { return stream.empty(shape, DType::i32); };
  ops::expert_map(stream, chosen,
                  {.row = ints(chosen.shape),
                   .source = ints({ops::rows_of_experts(chosen.shape[0], chosen.shape[1], groups, 1)}),
                   .groups = {.begin = ints({groups + 1}), .count = counts, .tile = 1}});
}

// The second round of a plan is there for its memory.
bool only_planned(const Stream& stream, const nn::ExpertExchange::Leaving& l) { return stream.device() == Device::null && !l.alone; }

// A plan does not know what tokens choose. Rounded up, rows of few tokens would be more than these can send.
nn::ExpertExchange::Round planned_round(std::int64_t tokens, const ExpertRoom& r) {
  const double rows = double(tokens) * visit_chance(r.choices, r.experts, r.experts_of_rank());
  const std::int64_t most = tokens * std::min(r.choices, r.ranks) / r.ranks;
  const std::vector<std::int64_t> each(std::size_t(r.ranks), std::min<std::int64_t>(std::lround(rows), most));
  return {.tokens = {0, tokens}, .out = each, .in = each, .choices = tokens * r.choices};
}

}  // namespace

bool travels_as_codes(ExpertWire wire, const ops::QuantizeSpec& spec, std::int64_t columns) {
  if (columns % block != 0) return false;
  if (wire != ExpertWire::recipe) return wire == ExpertWire::e4m3;
  return spec.format == DType::e4m3 && spec.rule == ScaleRule::power_of_two && spec.rows.rows == 1 && spec.rows.cols == block;
}

Tensor ExpertGroup::arriving(Stream& stream, const Leaving& l, std::int64_t columns, DType type, Region region) const {
  return stream.empty({l.room, columns}, type, region, Category::activations).rows(0, sum(l.now.in));
}

// Exchanges of the ranks, on which the stream waits. While two passes run, all of both are in one queue, so that their order is one.
void ExpertGroup::run(Stream& stream, const SideWork::Work& work) const {
  if (!turns_.running()) return work(stream);
  beside().join(stream, beside().begin(stream, work));
}

// Of all tokens, whose map is made. Ranks may have more of them than this one, as in an evaluation's last batch.
ExpertGroup::Round ExpertGroup::only_round(Stream& stream, const Choices& c, const Leaving& l) {
  const Scope scope(stream);
  const Tensor &out = l.rows.groups.count, in = stream.empty(out.shape, DType::i32);
  run(stream, [&](Stream& queue) { ranks_.all_to_all(queue, out, in); });
  ranks_.finish(stream);
  Round round = planned_round(c.chosen.shape[0], room_for(c));
  if (stream.device() != Device::null) {
    std::vector<std::int32_t> sent(round.out.size()), received(round.in.size());
    download(stream, out, sent.data()), download(stream, in, received.data());
    round.out.assign(sent.begin(), sent.end()), round.in.assign(received.begin(), received.end());
  }
  round.choices = sum(round.in) * room_for(c).packed();
  return round;
}

std::vector<std::int32_t> ExpertGroup::gather_tables(Stream& stream, const Choices& c, const Tensor& visited, const ExpertRoom& room) {
  const Scope scope(stream);
  const std::int64_t size = room.table_size(), tokens = c.chosen.shape[0];
  const Tensor own = stream.empty({size}, DType::i32), all = stream.empty({room.ranks * size}, DType::i32);
  const auto number = std::int32_t(tokens);
  upload(stream, &number, own.rows(0, 1));
  for (std::int64_t g = 0, at = 1; g < room.chunks(); ++g, at += room.ranks + room.experts) {
    const auto [first, count] = room.chunk(tokens, g);
    count_choices(stream, visited.rows(first, count), own.rows(at, room.ranks));
    count_choices(stream, c.chosen.rows(first, count), own.rows(at + room.ranks, room.experts));
  }
  run(stream, [&](Stream& queue) { ranks_.all_gather(queue, own, all); });
  ranks_.finish(stream);
  std::vector<std::int32_t> out(std::size_t(all.count()));
  download(stream, all, out.data());
  return out;
}

// Finds rounds and room; returns the choices for which rows have room.
std::int64_t ExpertGroup::divide(Stream& stream, const Choices& c, Visit& v) {
  const ExpertRoom room = room_for(c);
  Leaving& l = v.leaving;
  std::int64_t most = c.chosen.shape[0];  // tokens of a rank
  if (!room.bounded()) {
    ops::expert_map(stream, l.visited, l.rows);
    v.rounds = {only_round(stream, c, l)};
    l.room = std::max(room.visits(most), sum(v.rounds[0].in));
    return l.room * room.packed();
  }
  const std::vector<std::int32_t> tables = gather_tables(stream, c, l.visited, room);
  if (stream.device() == Device::null) {
    v.rounds.assign(2, planned_round(most, room));
  } else {
    most = room.most_tokens(tables), v.rounds = room.rounds(tables, ranks_.rank());
    v.kept = v.rounds.size() == 1 ? 1 : 0;
  }
  l.room = room.visits(most);
  return room.rows(most);
}

ExpertGroup::Visit ExpertGroup::begin(Stream& stream, const Choices& c) {
  const std::int64_t T = c.chosen.shape[0], K = c.chosen.shape[1], L = own(c.experts).count;
  const std::int64_t C = std::min<std::int64_t>(K, members()), J = std::min(K, L);
  Visit v;
  Leaving& l = v.leaving;
  l.visited = stream.empty({T, C}, DType::i32, c.keep, Category::activations);
  l.rows = ops::empty_expert_map(stream, T, C, members(), 1, c.keep);
  l.row = l.rows.row, l.source = l.rows.source;
  ops::visited_members(stream, c.chosen, L, l.visited);
  const std::int64_t choices = divide(stream, c, v);
  const auto ints = [&](Shape shape) { return stream.empty(shape, DType::i32, c.of_map, Category::activations); };
  l.weights = stream.empty({l.room, J}, DType::f32, c.keep, Category::activations);
  l.visiting = ints({l.room, J});
  v.map.source = ints({ops::rows_of_choices(choices, L, c.tile)});
  v.map.groups = {.begin = ints({L + 1}), .count = ints({L}), .tile = c.tile, .counted = ops::rows_of_experts(T, K, L, c.tile)};
  l.now = v.rounds[0];
  if (room_for(c).bounded()) enter(stream, c, 0, v);
  else receive(stream, c, v);
  return v;
}

void ExpertGroup::enter(Stream& stream, const Choices& c, int round, Visit& v) {
  Leaving& l = v.leaving;
  l.now = v.rounds[std::size_t(round)], l.alone = round < v.kept;
  const auto [first, count] = l.now.tokens;
  l.rows.row = l.row.rows(0, count);
  l.rows.source = l.source.rows(0, ops::rows_of_experts(count, l.row.shape[1], members(), 1));
  ops::expert_map(stream, l.visited.rows(first, count), l.rows);
  receive(stream, c, v);
}

// The choices of the tokens of a round, and their map.
void ExpertGroup::receive(Stream& stream, const Choices& c, Visit& v) {
  const Scope scope(stream);
  const Leaving& l = v.leaving;
  const std::int64_t coming = sum(l.now.in), J = l.weights.shape[1];
  v.weights = l.weights.rows(0, coming), v.map.row = l.visiting.rows(0, coming);
  const auto leaving = [&](DType type) { return stream.empty({l.rows.rows(), J}, type).rows(0, sum(l.now.out)); };
  const Tensor experts = leaving(DType::i32), weights = leaving(DType::f32), chosen = arriving(stream, l, J, DType::i32);
  ops::pack_choices(stream, packed(c, l, experts, weights), c.weights.rows(l.now.tokens.first, l.now.tokens.count));
  send(stream, experts, chosen, l), send(stream, weights, v.weights, l);
  ops::expert_map(stream, chosen, v.map, l.now.choices);
}

// While exchanges of two passes are under way, those begun first are finished first, on every rank.
void ExpertGroup::exchange(Stream& stream, std::initializer_list<Parts> all, Turns::Exchange kind, const Leaving& l) const {
  if (only_planned(stream, l)) return;
  if (!turns_.running() || !l.alone)
    return run(stream, [&](Stream& queue) {
      for (const Parts& p : all) ranks_.all_to_all(queue, flat_tensor(p.from), p.sent, flat_tensor(p.to), p.received);
    });
  struct Begun {  // of memory that is freed after an error
    ~Begun() {
      if (!finished) ranks.withdraw_sends();
    }
    comm::Communicator& ranks;
    std::vector<comm::BegunExchange> exchanges = {};
    bool finished = false;
  };
  Begun begun{ranks_};
  const SideWork::Piece piece = beside().begin(stream, [&](Stream& queue) {
    for (const Parts& p : all)
      begun.exchanges.push_back(ranks_.begin_all_to_all(queue, flat_tensor(p.from), p.sent, flat_tensor(p.to), p.received));
  });
  turns_.pass(kind);
  for (const comm::BegunExchange& e : begun.exchanges) ranks_.finish_all_to_all(e);
  begun.finished = true;
  beside().join(stream, piece);
}

void ExpertGroup::send(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const std::int64_t columns = from.shape[1];
  if (only_planned(stream, l)) return;
  run(stream, [&](Stream& queue) {
    ranks_.all_to_all(queue, flat_tensor(from), times(l.now.out, columns), flat_tensor(to), times(l.now.in, columns));
  });
}

void ExpertGroup::send_back(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const std::int64_t columns = from.shape[1];
  if (only_planned(stream, l)) return;
  run(stream, [&](Stream& queue) {
    ranks_.all_to_all(queue, flat_tensor(from), times(l.now.in, columns), flat_tensor(to), times(l.now.out, columns));
  });
}

void ExpertGroup::send_codes(Stream& stream, const Tensor& from, const Tensor& to, const Leaving& l) const {
  const Scope scope(stream);
  const std::int64_t columns = from.shape[1];
  const auto memory = [&](std::int64_t rows, const Tensor& x) {
    return empty_stored(stream, {rows * columns}, Storage::e4m3).part(0, x.count());
  };
  const Stored out = memory(l.rows.rows(), from), in = memory(l.room, to);
  ops::convert_stored(stream, Stored::plain(flat_tensor(from)), out);
  const auto parts = [&](const Tensor& from_here, const Tensor& to_here, std::int64_t of_row) {
    return Parts{from_here, to_here, times(l.now.out, of_row), times(l.now.in, of_row)};
  };
  exchange(stream, {parts(out.codes, in.codes, columns), parts(out.scales, in.scales, columns / block)}, Turns::Exchange::dispatch, l);
  ops::convert_stored(stream, in, Stored::plain(flat_tensor(to)));
}

void ExpertGroup::gather(Stream& stream, const Tensor& x, const Visit& visit, ops::Sink& rows) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const std::int64_t columns = x.shape[1];
  ops::Sink leaving = ops::make_sink(stream, {.format = x.dtype}, {.shape = {l.rows.rows(), columns}, .dtype = x.dtype});
  ops::gather_rows(stream, x.rows(l.now.tokens.first, l.now.tokens.count), l.rows, leaving);
  const Tensor from = leaving.plain.rows(0, sum(l.now.out)), to = arriving(stream, l, columns, x.dtype);
  if (travels_as_codes(wire_, rows.spec, columns)) send_codes(stream, from, to, l);
  else exchange(stream, {{from, to, times(l.now.out, columns), times(l.now.in, columns)}}, Turns::Exchange::dispatch, l);
  ops::gather_rows(stream, to, visit.map, rows);
}

void ExpertGroup::combine(Stream& stream, const Tensor& rows, const Visit& visit, const Tensor& y, bool add) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const Tensor sums = arriving(stream, l, y.shape[1], y.dtype), back = stream.empty({l.rows.rows(), y.shape[1]}, y.dtype);
  ops::combine_rows(stream, rows, visit.map, sums);
  const Tensor arrived = back.rows(0, sum(l.now.out));
  exchange(stream, {{sums, arrived, times(l.now.in, y.shape[1]), times(l.now.out, y.shape[1])}}, Turns::Exchange::combine, l);
  ops::combine_rows(stream, back, l.rows, y.rows(l.now.tokens.first, l.now.tokens.count), add);
}

Tensor ExpertGroup::weights_here(Stream& stream, const Visit& visit, const Tensor&) const {
  return arriving(stream, visit.leaving, visit.weights.shape[1], DType::f32);
}

void ExpertGroup::finish(Stream& stream, const Tensor& here, const Choices& c, const Visit& visit, const Tensor& all) {
  const Scope scope(stream);
  const Leaving& l = visit.leaving;
  const Tensor own = stream.empty({l.rows.rows(), here.shape[1]}, DType::f32).rows(0, sum(l.now.out));
  send_back(stream, here, own, l);
  ops::unpack_weights(stream, packed(c, l, {}, own), all.rows(l.now.tokens.first, l.now.tokens.count));
}

std::unique_ptr<nn::ExpertExchange> experts_of(comm::Communicator& ranks, ExpertWire wire, Turns& turns, double room) {
  if (ranks.size() == 1) return std::make_unique<nn::AllExperts>();
  return std::make_unique<ExpertGroup>(ranks, wire, turns, room);
}

}  // namespace octet::parallel
