#include "octet/parallel/pipeline/simulation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace octet::parallel {
namespace {

using Kind = PipelineAction::Kind;

double cost(Kind kind, const PipelineCosts& c) {
  switch (kind) {
    case Kind::forward: return c.forward;
    case Kind::backward: return c.input_gradient + c.weight_gradient;
    case Kind::input_gradient: return c.input_gradient;
    case Kind::weight_gradient: return c.weight_gradient;
    default: return 0;
  }
}

// A transfer as both ends name it: gradient or activation, of the micro-batch, into the part.
using Message = std::tuple<bool, int, int>;

class Simulation {
 public:
  Simulation(const PipelineShape& shape, const std::vector<StageActions>& actions, const PipelineCosts& costs, Sends sends)
      : shape_(shape), actions_(actions), costs_(costs), sends_(sends), next_(actions.size()), free_(actions.size()) {
    times_.stages.resize(actions.size());
  }

  PipelineTimes run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < actions_.size(); ++stage)
        while (advance(stage)) moved = true;
    }
    for (std::size_t stage = 0; stage < actions_.size(); ++stage) {
      times_.seconds = std::max(times_.seconds, free_[stage]);
      times_.ended = times_.ended && next_[stage] == actions_[stage].size();
    }
    return std::move(times_);
  }

 private:
  Message message_of(std::size_t stage, const PipelineAction& a) const {
    const int part = shape_.part(int(stage), a.chunk);
    const bool gradient = a.kind == Kind::send_gradient || a.kind == Kind::receive_gradient;
    const int into = a.kind == Kind::send_activation ? part + 1 : a.kind == Kind::send_gradient ? part - 1 : part;
    return {gradient, a.micro_batch, into};
  }

  // When the stage reached its next action, noted for the other end of a transfer.
  std::optional<double> reached(const std::map<Message, double>& at, const Message& m) const {
    const auto found = at.find(m);
    return found == at.end() ? std::nullopt : std::optional(found->second);
  }

  // Executes the stage's next action if it does not wait for another stage.
  bool advance(std::size_t stage) {
    if (next_[stage] == actions_[stage].size()) return false;
    const PipelineAction& a = actions_[stage][next_[stage]];
    double start = free_[stage], end = start + cost(a.kind, costs_);
    if (a.transfers()) {
      const Message message = message_of(stage, a);
      (a.sends() ? sent_ : received_).try_emplace(message, start);
      const std::optional<double> other = reached(a.sends() ? received_ : sent_, message);
      if (!other && (!a.sends() || sends_ == Sends::blocking)) return false;
      if (other && (!a.sends() || sends_ == Sends::blocking)) end = std::max(start, *other);
    }
    times_.stages[stage].push_back({a, start, end});
    free_[stage] = end, ++next_[stage];
    return true;
  }

  const PipelineShape& shape_;
  const std::vector<StageActions>& actions_;
  const PipelineCosts& costs_;
  const Sends sends_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::map<Message, double> sent_, received_;
  PipelineTimes times_;
};

}  // namespace

PipelineTimes simulate(const PipelineShape& shape, const std::vector<StageActions>& actions, const PipelineCosts& costs, Sends sends) {
  return Simulation(shape, actions, costs, sends).run();
}

}  // namespace octet::parallel
