#include "octet/parallel/axes.hpp"

namespace octet::parallel {

Axes::Axes(comm::Communicator* all, const RanksConfig& c, TensorWire wire) : all_(all != nullptr ? all : &self_) {
  make_groups(c);
  partition_ = partition_of(tensor(), wire), sequences_ = sequences_of(context());
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
  if (c.context == 1) return;
  const int n = int(c.context), rank = data().rank();
  context_ = data().split(rank / n, rank % n, n);
  std::vector<int> members;
  for (int i = 0; i < n; ++i) members.push_back(all_->rank() + (i - rank % n) * int(c.tensor));
  context_->report_to(*all_, std::move(members));
}

comm::Traffic Axes::traffic(comm::Collective c) const {
  const comm::Traffic sum = mesh_ ? mesh_->traffic(c) : all_->traffic(c);
  return context_ ? sum + context_->traffic(c) : sum;
}

}  // namespace octet::parallel
