#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "octet/base/check.hpp"
#include "octet/parallel/pipeline/division.hpp"
#include "octet/parallel/pipeline/schedule.hpp"
#include "octet/parallel/pipeline/simulation.hpp"

// Every small schedule is executed by an independent interpreter: stages as processes that wait for each other.

namespace octet::parallel {
namespace {

using Kind = PipelineAction::Kind;

struct Case {
  Schedule schedule;
  PipelineShape shape;
  std::string name() const {
    return format("{} p {} v {} m {} {}", to_text(schedule), shape.stages, shape.chunks, shape.micro_batches, shape.pairs);
  }
};

std::vector<Case> all_small() {
  std::vector<Case> out;
  for (const Schedule schedule : schedules)
    for (int p = 1; p <= 6; ++p)
      for (int v = 1; v <= (schedule == Schedule::interleaved ? 4 : 1); ++v)
        for (int m = 1; m <= 14; ++m) {
          PipelineShape shape = pipeline_shape(schedule, p, chunks_of(schedule, v), m);
          if (!takes_micro_batches(schedule, shape)) continue;
          out.push_back({schedule, shape});
          if (shape.folded) shape.pairs = true, out.push_back({schedule, shape});
        }
  return out;
}

// Executes in any order in which stages can move, with sends that wait for their receives, and keeps account of values and memory.
class Interpreter {
 public:
  explicit Interpreter(const Case& c) : c_(c), actions_(pipeline_actions(c.schedule, c.shape)), next_(actions_.size()) {}

  // The fault, or "".
  std::string run() {
    in_flight.assign(actions_.size(), 0), peak.assign(actions_.size(), 0);
    bool moved = true;
    while (moved && fault_.empty()) {
      moved = false;
      for (int stage = 0; stage < c_.shape.stages && fault_.empty(); ++stage) moved = move(stage) || moved;
    }
    for (int stage = 0; stage < c_.shape.stages && fault_.empty(); ++stage)
      if (action(stage) != nullptr) fault_ = format("stage {} waits forever at its action {}", stage, next_[std::size_t(stage)]);
    const std::size_t all = std::size_t(c_.shape.parts()) * std::size_t(c_.shape.micro_batches);
    if (fault_.empty() && (forwards_.size() != all || inputs_.size() != all || weights_.size() != all)) fault_ = "an action is missing";
    return fault_;
  }
  std::vector<int> in_flight, peak;

 private:
  const PipelineAction* action(int stage) const {
    const auto& own = actions_[std::size_t(stage)];
    return next_[std::size_t(stage)] < own.size() ? &own[next_[std::size_t(stage)]] : nullptr;
  }
  static bool matches(const PipelineAction& send, int sender, const PipelineAction& receive, int receiver) {
    const bool kinds = (send.kind == Kind::send_activation && receive.kind == Kind::receive_activation) ||
                       (send.kind == Kind::send_gradient && receive.kind == Kind::receive_gradient);
    return kinds && send.peer == receiver && receive.peer == sender && send.micro_batch == receive.micro_batch;
  }
  void require(bool ok, int stage, const PipelineAction& a, const char* need) {
    if (!ok && fault_.empty())
      fault_ = format("stage {}: {} of micro-batch {}, chunk {} without {}", stage, to_text(a.kind), a.micro_batch, a.chunk, need);
  }
  using Value = std::tuple<int, int>;  // part, micro-batch

  bool move(int stage) {
    const PipelineAction* a = action(stage);
    if (a == nullptr) return false;
    if (a->paired) return pair(stage);
    if (!a->transfers()) {
      a->computes() ? compute(stage, *a) : keep(stage, *a);
      ++next_[std::size_t(stage)];
      return true;
    }
    const PipelineAction* b = action(a->peer);
    if (!a->sends() || b == nullptr || !matches(*a, stage, *b, a->peer)) return false;
    const int from = c_.shape.part(stage, a->chunk), into = c_.shape.part(a->peer, b->chunk);
    if (a->kind == Kind::send_activation) {
      require(into == from + 1 && forwards_.contains({from, a->micro_batch}), stage, *a, "its value");
      arrived_.insert({into, a->micro_batch});
    } else {
      require(into == from - 1 && inputs_.contains({from, a->micro_batch}), stage, *a, "its value");
      gradients_.insert({into, a->micro_batch});
    }
    ++next_[std::size_t(stage)], ++next_[std::size_t(a->peer)];
    return true;
  }

  // Both read what was there before either.
  bool pair(int stage) {
    const PipelineAction forward = *action(stage);
    ++next_[std::size_t(stage)];
    const PipelineAction* backward = action(stage);
    require(backward != nullptr && backward->kind == Kind::backward && forward.kind == Kind::forward, stage, forward, "a backward");
    if (!fault_.empty()) return false;
    require(backward->micro_batch != forward.micro_batch, stage, forward, "a backward of another micro-batch");
    ++next_[std::size_t(stage)];
    compute(stage, forward), compute(stage, *backward);
    return true;
  }

  void keep(int stage, const PipelineAction& a) {
    const bool forward = a.kind == Kind::keep_activation;
    const int from = c_.shape.part(stage, a.chunk), into = c_.shape.part(stage, a.peer);
    require(into == from + (forward ? 1 : -1) && (forward ? forwards_ : inputs_).contains({from, a.micro_batch}), stage, a, "its value");
    (forward ? arrived_ : gradients_).insert({into, a.micro_batch});
  }

  void compute(int stage, const PipelineAction& a) {
    const int part = c_.shape.part(stage, a.chunk), parts = c_.shape.parts();
    const Value value{part, a.micro_batch};
    if (a.kind == Kind::forward) {
      require(part == 0 || arrived_.contains(value), stage, a, "its input");
      require(forwards_.insert(value).second, stage, a, "being new");
      peak[std::size_t(stage)] = std::max(peak[std::size_t(stage)], ++in_flight[std::size_t(stage)]);
      return;
    }
    if (a.kind == Kind::weight_gradient) {
      require(inputs_.contains(value), stage, a, "the gradient of its input");
    } else {
      require(forwards_.contains(value), stage, a, "its forward");
      require(part + 1 == parts || gradients_.contains(value), stage, a, "its gradient");
      require(inputs_.insert(value).second, stage, a, "being new");
    }
    if (a.kind == Kind::input_gradient) return;
    require(weights_.insert(value).second, stage, a, "being new");
    --in_flight[std::size_t(stage)];
  }

  const Case& c_;
  std::vector<StageActions> actions_;
  std::vector<std::size_t> next_;
  std::set<Value> forwards_, arrived_, inputs_, gradients_, weights_;
  std::string fault_;
};

TEST(PipelineSchedule, EndsWithBlockingSendsKeepsEveryDependencyAndHasTheStatedMemoryInFlight) {
  for (const Case& c : all_small()) {
    Interpreter run(c);
    ASSERT_EQ(run.run(), "") << c.name();
    for (int stage = 0; stage < c.shape.stages; ++stage) {
      const int stated = chunks_in_flight(c.schedule, c.shape, stage), seen = run.peak[std::size_t(stage)];
      EXPECT_LE(seen, stated) << c.name() << " stage " << stage;
      EXPECT_TRUE(seen == stated || c.schedule == Schedule::zero_bubble) << c.name() << " stage " << stage << ": " << seen;
    }
  }
}

// DualPipeV's published formula: (p - 1) (F&B + B - 3 W) for chunks of F = 1, B = 2, W = 1 and undivided pairs of F&B = 3. Half of it
// without pairs. Published activations: 2 p + 1 chunks.
TEST(PipelineSchedule, DualPipeVHasThePublishedBubbleWithPairsAndHalfOfItWithout) {
  for (int p = 1; p <= 8; ++p)
    for (const int m : {2 * p, 2 * p + 1, 5 * p})
      for (const bool pairs : {false, true}) {
        PipelineShape shape = pipeline_shape(Schedule::dualpipe_v, p, 2, m);
        shape.pairs = pairs;
        const PipelineTimes times = simulate(shape, pipeline_actions(Schedule::dualpipe_v, shape), {}, Sends::buffered);
        EXPECT_EQ(times.seconds - 6 * m, (p - 1) * (pairs ? 3 + 2 - 3 : 1)) << p << " " << m;
        EXPECT_EQ(chunks_in_flight(Schedule::dualpipe_v, shape, 0), 2 * p + 1);
      }
}

TEST(PipelineSchedule, StagesOfAFoldedPipelineHaveBothEndsOfIt) {
  const PipelineShape s = pipeline_shape(Schedule::dualpipe_v, 3, 2, 6);
  const int parts[3][2] = {{0, 5}, {1, 4}, {2, 3}};
  for (int stage = 0; stage < 3; ++stage)
    for (int chunk = 0; chunk < 2; ++chunk) {
      EXPECT_EQ(s.part(stage, chunk), parts[stage][chunk]);
      EXPECT_EQ(s.stage_of(s.part(stage, chunk)), stage);
      EXPECT_EQ(s.chunk_of(s.part(stage, chunk)), chunk);
    }
}

// A chunk is 1 / v of a stage: forward 1, both gradients 1 each.
double waiting_ratio(const Case& c, Sends sends) {
  const double part = 1.0 / c.shape.chunks, work = 3.0 * c.shape.micro_batches;
  const PipelineTimes times = simulate(c.shape, pipeline_actions(c.schedule, c.shape), {part, part, part}, sends);
  EXPECT_TRUE(times.ended) << c.name();
  return (times.seconds - work) / work;
}

TEST(PipelineSchedule, OneStagePairsEachForwardWithTheBackwardBeforeIt) {
  EXPECT_EQ(actions_in_pairs(1), (StageActions{{Kind::forward, 0}, {Kind::backward, 0}}));
  EXPECT_EQ(actions_in_pairs(3), (StageActions{{Kind::forward, 0},
                                               {.kind = Kind::forward, .micro_batch = 1, .paired = true},
                                               {Kind::backward, 0},
                                               {.kind = Kind::forward, .micro_batch = 2, .paired = true},
                                               {Kind::backward, 1},
                                               {Kind::backward, 2}}));
}

TEST(PipelineSchedule, HasTheBubbleOfItsFormulaWithUnitCosts) {
  for (const Case& c : all_small()) {
    EXPECT_NEAR(waiting_ratio(c, Sends::buffered), bubble_ratio(c.schedule, c.shape), 1e-9) << c.name();
    EXPECT_GE(waiting_ratio(c, Sends::blocking), waiting_ratio(c, Sends::buffered) - 1e-9) << c.name();
  }
}

TEST(PipelineSchedule, WithTwoPartsOfBackwardHasTheBubbleOfItsFormulaWithAnyCosts) {
  const PipelineCosts all[] = {{1, 1, 1}, {1, 1.4, 0.8}, {1, 2.2, 0.8}, {1, 0.9, 1.1}, {1, 1.2, 1.3}, {2, 1, 1.5}, {1, 3, 0.2}, {3, 1, 1}};
  for (const PipelineCosts& costs : all)
    for (int p = 2; p <= 6; ++p)
      for (const int m : {1, p - 1, p, p + 1, 2 * p, 5 * p}) {
        const PipelineShape shape{p, 1, m};
        const double work = m * costs.total();
        const PipelineTimes times = simulate(shape, pipeline_actions(Schedule::zero_bubble, shape), costs, Sends::blocking);
        EXPECT_NEAR((times.seconds - work) / work, bubble_ratio(Schedule::zero_bubble, shape, costs), 1e-9)
            << format("p {} m {} costs {} {} {}", p, m, costs.forward, costs.input_gradient, costs.weight_gradient);
      }
}

TEST(PipelineSchedule, TheSimulationFindsADeadlock) {
  // Both stages send first.
  const std::vector<StageActions> crossed{
      {{Kind::forward, 0}, {Kind::send_activation, 0, 0, 1}, {Kind::receive_gradient, 0, 0, 1}, {Kind::backward, 0}},
      {{Kind::send_gradient, 0, 0, 0}, {Kind::receive_activation, 0, 0, 0}}};
  EXPECT_FALSE(simulate({2, 1, 1}, crossed, {}, Sends::blocking).ended);
  EXPECT_TRUE(simulate({2, 1, 1}, crossed, {}, Sends::buffered).ended);
}

TEST(PipelineSchedule, RefusalsNameTheRuleAndTheNearestValue) {
  const auto refusal = [](Schedule s, const PipelineShape& shape) -> std::string {
    try {
      require_valid(s, shape);
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  EXPECT_NE(refusal(Schedule::interleaved, {4, 2, 10}).find("a multiple of its 4 stages, not 10: the nearest is 12"), std::string::npos);
  EXPECT_NE(refusal(Schedule::one_f_one_b, {4, 2, 8}).find("choose interleaved"), std::string::npos);
  EXPECT_NE(refusal(Schedule::gpipe, {0, 1, 8}).find("at least 1"), std::string::npos);
  EXPECT_EQ(refusal(Schedule::interleaved, {4, 2, 12}), "");
  EXPECT_NE(refusal(Schedule::dualpipe_v, pipeline_shape(Schedule::dualpipe_v, 4, 2, 7)).find("the nearest is 8"), std::string::npos);
  EXPECT_NE(refusal(Schedule::dualpipe_v, pipeline_shape(Schedule::dualpipe_v, 4, 1, 8)).find("two chunks per stage"), std::string::npos);
  EXPECT_THROW(schedule_named("1b1f"), ConfigError);
}

// Every division of `layers` into parts of at least one.
void each_division(std::int64_t layers, int parts, std::vector<std::int64_t>& made, const std::function<void()>& use) {
  if (int(made.size()) + 1 == parts) {
    made.push_back(layers), use(), made.pop_back();
    return;
  }
  for (std::int64_t n = 1; n <= layers - (parts - 1 - std::int64_t(made.size())); ++n) {
    made.push_back(n);
    each_division(layers - n, parts, made, use);
    made.pop_back();
  }
}

// The cost of the costliest part.
double largest_part(const std::vector<std::int64_t>& division, const LayerCosts& c) {
  std::vector<double> costs;
  for (const std::int64_t layers : division) costs.push_back(double(layers) * c.layer);
  costs.front() += c.embedding, costs.back() += c.head;
  return std::ranges::max(costs);
}

TEST(LayerDivision, NoOtherDivisionHasACheaperLargestPart) {
  for (const LayerCosts& costs : {LayerCosts{1, 0, 0}, LayerCosts{1, 0.1, 2.5}, LayerCosts{2, 3, 1}, LayerCosts{1, 0, 7}})
    for (std::int64_t layers = 1; layers <= 12; ++layers)
      for (int parts = 1; parts <= std::min<std::int64_t>(layers, 5); ++parts) {
        double least = 1e300;
        std::vector<std::int64_t> made;
        each_division(layers, parts, made, [&] { least = std::min(least, largest_part(made, costs)); });
        const auto division = divide_layers(layers, parts, costs);
        std::int64_t sum = 0;
        for (const std::int64_t n : division) {
          sum += n;
          EXPECT_GE(n, 1);
        }
        EXPECT_EQ(sum, layers);
        EXPECT_NEAR(largest_part(division, costs), least, 1e-12) << layers << " layers, " << parts << " parts";
      }
  EXPECT_THROW(divide_layers(3, 4, {}), ConfigError);
}

TEST(LayerDivision, CountsTheRateOfEachPrecision) {
  constexpr double block = 233046016, head = 152064.0 * 3584, sequence = 4096, columns = 3584;  // Qwen2.5-7B
  const LayerCosts wide = layer_costs({{.in_16_bits = block}}, {.in_16_bits = head}, sequence, columns);
  EXPECT_NEAR(wide.head / wide.layer, 2.2, 0.01);
  EXPECT_EQ(divide_layers(28, 2, wide), (std::vector<std::int64_t>{15, 13}));
  const LayerCosts codes = layer_costs({{.in_8_bits = block}}, {.in_16_bits = head}, sequence, columns);
  EXPECT_NEAR(codes.head / codes.layer, 4.0, 0.2);  // 4.0 was measured
  EXPECT_EQ(divide_layers(28, 2, codes), (std::vector<std::int64_t>{16, 12}));
}

TEST(LayerDivision, AddsTheExcessOfABlockToTheNearerEnd) {
  const LayerCosts costs =
      layer_costs({{.in_16_bits = 1}, {.in_8_bits = 1}, {.in_8_bits = 1}, {.in_8_bits = 1}, {.in_16_bits = 3}}, {}, 0, 0);
  EXPECT_EQ(costs.layer, 1);
  EXPECT_EQ(costs.embedding, 1);
  EXPECT_EQ(costs.head, 5);
}

}  // namespace
}  // namespace octet::parallel
