#include "octet/parallel/axes.hpp"

namespace octet::parallel {

Axes::Axes(comm::Communicator* all, std::int64_t tensor, std::int64_t pipeline) : all_(all != nullptr ? all : &self_) {
  const std::int64_t model = tensor * pipeline;
  if (model == 1) return;
  if (all_->size() % model != 0)
    throw ConfigError(
        format("{}: {} ranks were started, which is not a multiple of {}; start {}",
               pipeline == 1 ? format("ranks.tensor = {}", tensor) : format("ranks.tensor = {} and ranks.pipeline = {}", tensor, pipeline),
               all_->size(), pipeline == 1 ? "it" : to_text(model), round_up(all_->size(), model)));
  mesh_.emplace(*all_, std::vector<comm::Axis>{{"tensor", int(tensor)}, {"data", int(all_->size() / model)}, {"pipeline", int(pipeline)}});
}

}  // namespace octet::parallel
