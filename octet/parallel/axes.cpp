#include "octet/parallel/axes.hpp"

namespace octet::parallel {

Axes::Axes(comm::Communicator* all, const RanksConfig& c, const CommConfig& wires) : all_(all != nullptr ? all : &self_) {
  make_groups(c);
  divide_experts(c), divide_shards(c);
  partition_ = partition_of(tensor(), wires.tensor), sequences_ = sequences_of(context());
  turns_ = divides_experts() && folds(c.schedule) ? std::make_unique<InTurn>() : std::make_unique<Turns>();
  expert_exchange_ = experts_of(experts(), wires.experts, *turns_, c.expert_room), parts_of_stacks_ = partition_of(experts(), wires.tensor);
  parts_ = divides_experts() ? parts_of_stacks_.get() : partition_.get();
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
  if (c.context > 1) context_ = neighbours_in_data(c.context, c.tensor);
}

// Of so many, in their order.
std::unique_ptr<comm::Communicator> Axes::neighbours_in_data(std::int64_t ranks, std::int64_t tensor) {
  const int n = int(ranks), rank = data().rank();
  std::unique_ptr<comm::Communicator> out = data().split(rank / n, rank % n, n);
  std::vector<int> members;
  for (int i = 0; i < n; ++i) members.push_back(all_->rank() + (i - rank % n) * int(tensor));
  out->report_to(*all_, std::move(members));
  return out;
}

// Those with the same place among as many neighbours.
std::unique_ptr<comm::Communicator> Axes::every_in_data(std::int64_t ranks, std::int64_t tensor) {
  const int n = int(ranks), size = data().size(), rank = data().rank();
  std::unique_ptr<comm::Communicator> out = data().split(rank % n, rank / n, size / n);
  std::vector<int> members;
  for (int i = rank % n; i < size; i += n) members.push_back(all_->rank() + (i - rank) * int(tensor));
  out->report_to(*all_, std::move(members));
  return out;
}

// Where the numbers do not fit, the rules of layouts say so.
void Axes::divide_experts(const RanksConfig& c) {
  const int n = int(c.expert), ranks = data().size();
  if (n == 1 || ranks % n != 0) return;
  experts_ = neighbours_in_data(n, c.tensor), same_experts_ = every_in_data(n, c.tensor);
}

void Axes::divide_shards(const RanksConfig& c) {
  const std::int64_t ranks = data().size();
  if (c.shard == 0 || c.shard == ranks || ranks % c.shard != 0) return;
  shards_ = neighbours_in_data(c.shard, c.tensor), same_shard_ = every_in_data(c.shard, c.tensor);
}

comm::Traffic Axes::traffic(comm::Collective c) const {
  comm::Traffic sum = mesh_ ? mesh_->traffic(c) : all_->traffic(c);
  for (const auto* part : {&context_, &experts_, &same_experts_, &shards_, &same_shard_})
    if (*part) sum = sum + (*part)->traffic(c);
  return sum;
}

}  // namespace octet::parallel
