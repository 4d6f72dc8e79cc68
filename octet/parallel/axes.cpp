#include "octet/parallel/axes.hpp"

#include "octet/base/text.hpp"

namespace octet::parallel {

namespace {

// "ranks.tensor = 2 and ranks.context = 2", without axes of one rank.
std::string axes_text(std::int64_t tensor, std::int64_t pipeline, std::int64_t context) {
  std::vector<std::string> out;
  for (const auto& [name, ranks] : {std::pair("tensor", tensor), {"context", context}, {"pipeline", pipeline}})
    if (ranks > 1) out.push_back(format("ranks.{} = {}", name, ranks));
  return joined(out, " and ");
}

}  // namespace

Axes::Axes(comm::Communicator* all, std::int64_t tensor, std::int64_t pipeline, std::int64_t context)
    : all_(all != nullptr ? all : &self_) {
  const std::int64_t model = tensor * pipeline, product = model * context;
  if (product == 1) return;
  if (all_->size() % product != 0)
    throw ConfigError(format("{}: {} ranks were started, which is not a multiple of {}; start {}", axes_text(tensor, pipeline, context),
                             all_->size(), product, round_up(all_->size(), product)));
  if (model > 1)
    mesh_.emplace(*all_,
                  std::vector<comm::Axis>{{"tensor", int(tensor)}, {"data", int(all_->size() / model)}, {"pipeline", int(pipeline)}});
  if (context == 1) return;
  const int n = int(context), rank = data().rank();
  context_ = data().split(rank / n, rank % n, n);
  std::vector<int> members;
  for (int i = 0; i < n; ++i) members.push_back(all_->rank() + (i - rank % n) * int(tensor));
  context_->report_to(*all_, std::move(members));
}

comm::Traffic Axes::traffic(comm::Collective c) const {
  const comm::Traffic sum = mesh_ ? mesh_->traffic(c) : all_->traffic(c);
  return context_ ? sum + context_->traffic(c) : sum;
}

}  // namespace octet::parallel
