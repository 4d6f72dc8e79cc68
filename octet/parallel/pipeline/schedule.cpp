#include "octet/parallel/pipeline/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "octet/base/check.hpp"
#include "octet/parallel/pipeline/order.hpp"
#include "octet/parallel/pipeline/simulation.hpp"

namespace octet::parallel {
namespace {

using Kind = PipelineAction::Kind;

// Puts the transfers between computing actions. Events of all stages are listed one by one, by their time with unit costs. A transfer is
// one event of both its stages, so all stages have their events in one global order, and blocking sends end.
class Transfers {
 public:
  Transfers(const PipelineShape& shape, std::vector<StageActions> order)
      : shape_(shape), order_(std::move(order)), next_(order_.size()), free_(order_.size()), out_(order_.size()) {
    const std::size_t values = std::size_t(shape.parts()) * std::size_t(shape.micro_batches);
    for (auto* ready : {&inputs_, &gradients_}) ready->assign(values, -1);
  }

  std::vector<StageActions> insert() {
    for (int stage = earliest(); stage >= 0; stage = earliest()) {
      send_until(start_of(stage));
      compute(stage);
    }
    send_until(std::numeric_limits<double>::infinity());
    for (std::size_t s = 0; s < order_.size(); ++s) check(next_[s] == order_[s].size(), "pipeline schedule: stage {} never ends", s);
    return std::move(out_);
  }

 private:
  double& at(std::vector<double>& ready, int part, int micro_batch) {
    return ready[std::size_t(part) * std::size_t(shape_.micro_batches) + std::size_t(micro_batch)];
  }

  // When the tensor from another part that an action reads is there: 0 if it reads none, negative if it is not known yet.
  double input_of(int stage, const PipelineAction& a) {
    const int part = shape_.part(stage, a.chunk);
    if (a.kind == Kind::forward && part > 0) return at(inputs_, part, a.micro_batch);
    if (a.kind != Kind::forward && a.kind != Kind::weight_gradient && part + 1 < shape_.parts()) return at(gradients_, part, a.micro_batch);
    return 0;
  }

  // The next actions of a stage that begin and end together: one, or a pair.
  std::span<const PipelineAction> together(std::size_t stage) const {
    const StageActions& order = order_[stage];
    if (next_[stage] == order.size()) return {};
    return std::span(order).subspan(next_[stage], order[next_[stage]].paired ? 2 : 1);
  }

  // The time at which a stage could begin these; negative if it cannot.
  double start_of(int stage) {
    const std::span<const PipelineAction> actions = together(std::size_t(stage));
    double start = actions.empty() ? -1 : free_[std::size_t(stage)];
    for (const PipelineAction& a : actions) {
      const double input = input_of(stage, a);
      start = input < 0 || start < 0 ? -1 : std::max(input, start);
    }
    return start;
  }

  int earliest() {
    int best = -1;
    double best_start = 0;
    for (int stage = 0; stage < shape_.stages; ++stage)
      if (const double start = start_of(stage); start >= 0 && (best < 0 || start < best_start)) best = stage, best_start = start;
    return best;
  }

  void compute(int stage) {
    const std::size_t s = std::size_t(stage);
    const std::span<const PipelineAction> actions = together(s);
    free_[s] = start_of(stage);
    for (const PipelineAction& a : actions) free_[s] += a.kind == Kind::backward ? 2 : 1, out_[s].push_back(a);
    next_[s] += actions.size();
    for (const PipelineAction& a : actions) {
      const int part = shape_.part(stage, a.chunk);
      if (a.kind == Kind::forward && part + 1 < shape_.parts()) leave(stage, a, part + 1, inputs_);
      if ((a.kind == Kind::backward || a.kind == Kind::input_gradient) && part > 0) leave(stage, a, part - 1, gradients_);
    }
  }

  // The result of an action that another part reads.
  void leave(int stage, const PipelineAction& a, int into, std::vector<double>& ready) {
    const double end = free_[std::size_t(stage)];
    at(ready, into, a.micro_batch) = end;
    if (shape_.stage_of(into) != stage) return void(pending_.insert({end, {stage, into, a}}));
    const Kind kind = a.kind == Kind::forward ? Kind::keep_activation : Kind::keep_gradient;
    out_[std::size_t(stage)].push_back({kind, a.micro_batch, a.chunk, shape_.chunk_of(into)});
  }

  // Transfers whose values are there by then.
  void send_until(double time) {
    for (; !pending_.empty() && pending_.begin()->first <= time; pending_.erase(pending_.begin())) {
      const auto& [stage, into, a] = pending_.begin()->second;
      const bool forward = a.kind == Kind::forward;
      const int other = shape_.stage_of(into);
      out_[std::size_t(stage)].push_back({forward ? Kind::send_activation : Kind::send_gradient, a.micro_batch, a.chunk, other});
      out_[std::size_t(other)].push_back(
          {forward ? Kind::receive_activation : Kind::receive_gradient, a.micro_batch, shape_.chunk_of(into), stage});
    }
  }

  struct Transfer {
    int stage, into;  // from the stage, into the part
    PipelineAction of;
  };

  PipelineShape shape_;
  std::vector<StageActions> order_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;                 // when the stage has computed all of its actions so far
  std::vector<double> inputs_, gradients_;   // when they are there, by part and micro-batch; -1: not yet
  std::multimap<double, Transfer> pending_;  // by the time at which values are there
  std::vector<StageActions> out_;
};

}  // namespace

std::string_view to_text(Schedule s) {
  constexpr std::string_view names[] = {"gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe_v"};
  return names[std::size_t(s)];
}

Schedule schedule_named(std::string_view name) {
  for (const Schedule s : schedules)
    if (to_text(s) == name) return s;
  throw ConfigError(format("\"{}\" is not a pipeline schedule; choose {}", printable(std::string(name)), schedule_names()));
}

std::string schedule_names() {
  std::string out;
  for (const Schedule s : schedules) {
    const std::string_view before = s == schedules[0] ? "" : s == std::end(schedules)[-1] ? " or " : ", ";
    out += format("{}{}", before, to_text(s));
  }
  return out;
}

std::string_view to_text(PipelineAction::Kind k) {
  constexpr std::string_view names[] = {"forward",         "backward",           "input gradient", "weight gradient",
                                        "send activation", "receive activation", "send gradient",  "receive gradient",
                                        "keep activation", "keep gradient"};
  return names[std::size_t(k)];
}

void require_valid(Schedule schedule, const PipelineShape& s) {
  if (s.stages < 1 || s.chunks < 1 || s.micro_batches < 1)
    throw ConfigError(format("a pipeline of {} stages, {} chunks per stage and {} micro-batches: each must be at least 1", s.stages,
                             s.chunks, s.micro_batches));
  if (s.folded != folds(schedule) || (s.pairs && !folds(schedule)))
    throw ContractError(format("the schedule {}: its shape is that of another one", to_text(schedule)));
  if (schedule != Schedule::interleaved && s.chunks != chunks_of(schedule, 1))
    throw ConfigError(format("the schedule {} has {} per stage, not {}: choose interleaved, or {}", to_text(schedule),
                             folds(schedule) ? "two chunks" : "one chunk", s.chunks, folds(schedule) ? "2 chunks" : "1 chunk"));
  if (takes_micro_batches(schedule, s)) return;
  if (schedule == Schedule::dualpipe_v)
    throw ConfigError(
        format("the schedule dualpipe_v needs at least two micro-batches for each of its {} stages, not {}: the nearest is {}", s.stages,
               s.micro_batches, next_micro_batches(schedule, s)));
  throw ConfigError(format("the interleaved schedule needs micro-batches in a multiple of its {} stages, not {}: the nearest is {}",
                           s.stages, s.micro_batches, std::max(1, (s.micro_batches + s.stages / 2) / s.stages) * s.stages));
}

std::vector<StageActions> pipeline_actions(Schedule schedule, const PipelineShape& shape) {
  require_valid(schedule, shape);
  return Transfers(shape, compute_order(schedule, shape)).insert();
}

std::vector<StageActions> actions_in_turn(const PipelineShape& shape) { return Transfers(shape, order_in_turn(shape)).insert(); }

StageActions actions_in_pairs(int micro_batches) {
  StageActions out{{.kind = Kind::forward}};
  for (int m = 1; m < micro_batches; ++m) {
    out.push_back({.kind = Kind::forward, .micro_batch = m, .paired = true});
    out.push_back({.kind = Kind::backward, .micro_batch = m - 1});
  }
  out.push_back({.kind = Kind::backward, .micro_batch = micro_batches - 1});
  return out;
}

int chunks_in_flight(Schedule schedule, const PipelineShape& s, int stage) {
  const int m = s.micro_batches, p = s.stages, v = s.chunks;
  switch (schedule) {
    case Schedule::gpipe: return m;
    case Schedule::one_f_one_b: return std::min(m, p - stage);
    case Schedule::interleaved: return std::min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
    case Schedule::zero_bubble: return std::min(m, p);
    case Schedule::dualpipe_v: return 2 * p + 1;
  }
  return m;
}

int chunks_deferred(Schedule schedule, const PipelineShape& s, int stage) {
  if (schedule == Schedule::dualpipe_v) return s.stages;
  return schedule == Schedule::zero_bubble ? chunks_in_flight(schedule, s, stage) : 0;
}

namespace {

double bubble_of_dualpipe_v(PipelineShape s, const PipelineCosts& c) {
  const double of_step = s.micro_batches * s.chunks * c.total();
  if (c.forward == c.input_gradient && c.forward == c.weight_gradient) {
    const double others = s.stages - 1, b = c.input_gradient + c.weight_gradient, pair = c.total();
    return others * (s.pairs ? pair + b - 3 * c.weight_gradient : c.forward) / of_step;
  }
  s.micro_batches = 2 * s.stages;
  const double least = simulate(s, pipeline_actions(Schedule::dualpipe_v, s), c, Sends::buffered).seconds;
  return (least - s.micro_batches * s.chunks * c.total()) / of_step;
}

}  // namespace

double bubble_ratio(Schedule schedule, const PipelineShape& s, const PipelineCosts& c) {
  const double others = double(s.stages - 1), m = double(s.micro_batches);
  if (schedule == Schedule::interleaved) return others / (m * s.chunks);
  if (schedule == Schedule::dualpipe_v) return bubble_of_dualpipe_v(s, c);
  if (schedule != Schedule::zero_bubble) return others / m;
  const double f = c.forward, b = c.input_gradient, w = c.weight_gradient;
  const double slowest = std::max({f, b, w, f + b - w}), beyond = m - s.stages;
  return (others * slowest + (beyond < 0 ? -beyond * (f + b - slowest) : beyond * std::abs(f - w))) / (m * c.total());
}

}  // namespace octet::parallel
