#include "octet/parallel/axes.hpp"

#include <algorithm>

namespace octet::parallel {
namespace {

// `count` ranks from `first` on, each so many after the one before.
std::vector<int> every(int first, int stride, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(first + i * stride);
  return out;
}
std::vector<int> neighbours_of(int rank, int n) { return every(rank / n * n, 1, n); }

}  // namespace

Axes::Axes(comm::Communicator* all, const RanksConfig& c, const CommConfig& wires) : all_(all != nullptr ? all : &self_) {
  make_groups(c);
  divide_experts(c), divide_shards(c);
  partition_ = partition_of(tensor(), wires.tensor), sequences_ = sequences_of(context());
  const bool of_rows = divides_layers() && wires.turns;
  const bool of_experts = divides_experts() && (wires.turns || (folds(c.schedule) && c.pipeline > 1));
  turns_ = of_rows || of_experts ? std::make_unique<InTurn>(!of_rows) : std::make_unique<Turns>();
  turns_of_rows_ = of_rows ? turns_.get() : &apart();
  expert_exchange_ = experts_of(experts(), wires.experts, *turns_, c.expert_room);
  if (divides_experts() && divides_layers()) join_parts(c);
  parts_ = partition_of(with_parts_ ? *with_parts_ : divides_experts() ? experts() : tensor(), wires.tensor);
}

// Tensor ranks of one expert group, which are neighbours.
void Axes::join_parts(const RanksConfig& c) {
  const int ranks = int(c.tensor * c.expert), own = all_->rank();
  with_parts_ = all_->split(own / ranks, own % ranks, ranks);
  with_parts_->report_to(*all_, neighbours_of(own, ranks));
}

void Axes::make_groups(const RanksConfig& c) {
  const std::int64_t model = c.tensor * c.pipeline, product = c.beside_data();
  if (product == 1) return;
  if (all_->size() % product != 0)
    throw ConfigError(format("{}: {} ranks were started, which is not a multiple of {}; start {}", c.axes_text(), all_->size(), product,
                             round_up(all_->size(), product)));
  if (model > 1)
    mesh_.emplace(*all_,
                  std::vector<comm::Axis>{{"tensor", int(c.tensor)}, {"data", int(all_->size() / model)}, {"pipeline", int(c.pipeline)}});
  if (c.context > 1) context_ = in_data(neighbours_of(data().rank(), int(c.context)), c.tensor);
}

// Ranks of data(), of which this is one.
std::unique_ptr<comm::Communicator> Axes::in_data(const std::vector<int>& ranks, std::int64_t tensor) {
  const int own = data().rank(), place = int(std::ranges::find(ranks, own) - ranks.begin());
  std::unique_ptr<comm::Communicator> out = data().split(ranks.front(), place, int(ranks.size()));
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(all_->rank() + (rank - own) * int(tensor));
  out->report_to(*all_, std::move(members));
  return out;
}

// Where the numbers do not fit, the rules of layouts say so.
void Axes::divide_experts(const RanksConfig& c) {
  const int n = int(c.expert), ranks = data().size(), own = data().rank();
  if (n == 1 || ranks % n != 0) return;
  experts_ = in_data(neighbours_of(own, n), c.tensor), same_experts_ = in_data(every(own % n, n, ranks / n), c.tensor);
}

void Axes::divide_shards(const RanksConfig& c) {
  const int ranks = data().size(), own = data().rank(), n = int(c.shard), e = int(c.expert);
  if (n == 0 || n == ranks || ranks % n != 0 || n % e != 0) return;
  shards_ = in_data(neighbours_of(own, n), c.tensor), same_shard_ = in_data(every(own % n, n, ranks / n), c.tensor);
  if (divides_experts()) shards_of_stacks_ = in_data(every(own / n * n + own % e, e, n / e), c.tensor);
}

comm::Traffic Axes::traffic(comm::Collective c) const {
  comm::Traffic sum = mesh_ ? mesh_->traffic(c) : all_->traffic(c);
  for (const auto* part : {&context_, &experts_, &same_experts_, &shards_, &same_shard_, &shards_of_stacks_, &with_parts_})
    if (*part) sum = sum + (*part)->traffic(c);
  return sum;
}

}  // namespace octet::parallel
