#include "octet/parallel/axes.hpp"

namespace octet::parallel {

Axes::Axes(comm::Communicator* all, std::int64_t tensor) : all_(all != nullptr ? all : &self_) {
  if (tensor == 1) return;
  if (all_->size() % tensor != 0)
    throw ConfigError(format("ranks.tensor = {}: {} ranks were started, which is not a multiple of it; start {}", tensor, all_->size(),
                             round_up(all_->size(), tensor)));
  mesh_.emplace(*all_, std::vector<comm::Axis>{{"tensor", int(tensor)}, {"data", int(all_->size() / tensor)}});
}

}  // namespace octet::parallel
