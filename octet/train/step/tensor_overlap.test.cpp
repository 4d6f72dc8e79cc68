#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "octet/base/clock.hpp"
#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Exchanges of tensor ranks beside products, and beside another micro-batch. A GPU may run a piece of side work at any time between its
// begin and its join, so steps have the same bits where each piece runs at the first moment, and where it runs at the last one. Each piece
// has scratch of its own, as on a GPU, so memory that is written or reused in between changes results.

namespace octet::train {
namespace {

using namespace octet::train::testing;

enum class Order { in_stream, first, last, unjoined };

// Each piece runs when it is joined. unjoined: when a later piece begins, as if no join waited for one piece.
class LateWork final : public SideWork {
 public:
  LateWork(Stream& side, bool joins) : side_(side), joins_(joins) {}
  ~LateWork() override { EXPECT_TRUE(!joins_ || pending_.empty()) << "a piece was not joined"; }

  Piece begin(Stream&, const Work& work) override {
    if (!joins_) run_all();
    pending_.push_back({std::make_shared<const StreamEvent>(), work}), ++begun_;
    return pending_.back().first;
  }
  void join(Stream&, const Piece& piece) override {
    while (joins_ && std::ranges::find(pending_, piece, &Pending::first) != pending_.end()) run_next();
  }
  void join(Stream&) override {
    if (joins_) run_all();
  }
  int begun() const { return begun_; }

 private:
  using Pending = std::pair<Piece, Work>;
  void run_next() {
    const Work work = std::move(pending_.front().second);
    pending_.pop_front();
    work(side_);
  }
  void run_all() {
    while (!pending_.empty()) run_next();
  }
  Stream& side_;
  bool joins_;
  std::deque<Pending> pending_;
  int begun_ = 0;
};

EngineConfig engine_of(const std::string& family, const std::string& recipe, int tensor, const std::vector<std::string>& recompute = {}) {
  EngineConfig config = small_engine(family, recipe, nn::Recompute::named(recompute));
  config.shape.hidden = 128;
  config.ranks.tensor = tensor, config.ranks.data = 1;
  return config;
}

struct Result {
  std::vector<float> gradients;
  std::vector<float> losses;
  int begun = 0;  // pieces, by one rank

  bool same_bits(const Result& o) const { return gradients == o.gradients && losses == o.losses; }
};

// A step's micro-batches of a rank.
std::vector<data::Batch> batches_of(int step, int group, int micro_batches) {
  std::vector<data::Batch> out;
  for (int m = 0; m < micro_batches; ++m)
    out.push_back(random_batch(1, 32, 61, 40 + std::uint64_t(2 * micro_batches * step + micro_batches * group + m)));
  return out;
}

// Two steps.
Result steps_of(const EngineConfig& config, Order order, int micro_batches = 2) {
  Result out;
  comm::run_on_threads({.ranks = int(config.ranks.all()), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    Stream side(e.stream);
    QueuedWork first(side);
    LateWork late(side, order == Order::last);
    SideWork in_stream;
    SideWork& work = order == Order::in_stream ? in_stream : order == Order::first ? static_cast<SideWork&>(first) : late;
    parallel::WorkInTurn in_turn(work, e.axes.turns_of_rows());
    e.partition().set_beside(in_turn);
    if (order == Order::first) e.axes.expert_exchange().set_beside(first);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < 2; ++s) {
      runner.run(batches_of(s, e.axes.sequence_group(), micro_batches), {.learning_rate = 1e-2}, [&] {
        const std::vector<float> flat = e.flat_gradients();
        const Readout shown = read_out(e);
        if (c.rank() > 0) return;
        out.gradients = flat, out.losses.push_back(shown.loss), out.begun = late.begun();
      });
    }
  });
  return out;
}

void expect_same_bits(const EngineConfig& config, const std::string& what) {
  const Result in_stream = steps_of(config, Order::in_stream), last = steps_of(config, Order::last);
  EXPECT_TRUE(in_stream.same_bits(steps_of(config, Order::first))) << what << ", each exchange at its first moment";
  EXPECT_TRUE(in_stream.same_bits(last)) << what << ", each exchange at its last moment";
  // In each branch of two blocks, two micro-batches and two steps: a gather and a sum, and gathers of recomputed norms.
  const int branches = 2 * 2 * 2 * int(config.shape.layers);
  EXPECT_EQ(last.begun, branches * (config.model.recompute.norm ? 3 : 2)) << what;
}

TEST(TensorOverlap, HasTheBitsOfExchangesInOrderUnderEveryRecipe) {
  for (const scaling::RecipeEntry& recipe : scaling::recipes()) {
    if (scaling::has_narrow_range(recipe.name)) continue;  // refused beside tensor ranks
    for (const int ranks : {2, 4})
      for (const bool again : {false, true})
        expect_same_bits(
            engine_of("qwen2", std::string(recipe.name), ranks, again ? std::vector<std::string>{"norm"} : std::vector<std::string>{}),
            format("{}, {} ranks{}", recipe.name, ranks, again ? ", norms again" : ""));
  }
}

TEST(TensorOverlap, HasTheSameBitsWithRecomputedParts) {
  for (const std::string part : {"activation", "mlp", "attention", "block"})
    for (const std::string recipe : {"current", "block128"}) expect_same_bits(engine_of("qwen3", recipe, 2, {part}), part + ", " + recipe);
}

TEST(TensorOverlap, HasTheSameBitsBesideDataRanksAtEveryStageAndWithEightBitSums) {
  for (const int zero : {0, 1, 2, 3}) {
    EngineConfig config = engine_of("llama", "current", 2, {"norm", "activation"});
    config.ranks.data = 2, config.ranks.zero = zero;
    expect_same_bits(config, format("stage {}", zero));
  }
  EngineConfig coded = engine_of("qwen2", "delayed", 2);
  coded.comm.tensor = parallel::TensorWire::e4m3;
  expect_same_bits(coded, "e4m3");
}

// The orders above would find a product that reads what its exchange has not brought yet.
TEST(TensorOverlap, HasOtherBitsWhereNobodyWaitsForExchanges) {
  const EngineConfig config = engine_of("qwen2", "current", 2);
  EXPECT_FALSE(steps_of(config, Order::in_stream).same_bits(steps_of(config, Order::unjoined)));
}

// On a target whose exchanges overlap, and on others: the side queue is the engine's.
TEST(TensorOverlap, IsOnWhereAnExchangeRunsBesideTheComputation) {
  for (const Device target : {Device::cpu, Device::cuda})
    for (const bool overlap : {false, true}) {
      EngineConfig config = engine_of("qwen2", "current", 2);
      config.comm.overlap = overlap;
      comm::DryRunCommunicator two(2);
      const Engine e(config, Device::null, {.device = target}, &two);
      EXPECT_EQ(e.sharding.overlaps_activations(), overlap && target == Device::cuda);
    }
}

// The backward of a micro-batch and the forward of the next one in turn, against one after the other.
EngineConfig turning(EngineConfig config) {
  config.shape.tied = false, config.comm.turns = true;
  return config;
}

void expect_bits_of_passes_apart(EngineConfig config, const std::string& what) {
  config = turning(config);
  EngineConfig apart = config;
  apart.comm.turns = false;
  const Result one_by_one = steps_of(apart, Order::in_stream, 3);
  for (const Order order : {Order::in_stream, Order::first, Order::last})
    EXPECT_TRUE(one_by_one.same_bits(steps_of(config, order, 3))) << what << ", order " << int(order);
}

TEST(TensorTurns, HaveTheBitsOfPassesApartUnderEveryRecipe) {
  for (const char* recipe : {"fp32", "bf16", "current", "delayed", "rowwise", "block128", "mxfp8"})
    expect_bits_of_passes_apart(engine_of("qwen2", recipe, 2), recipe);
  for (const std::string part : {"norm", "activation", "mlp", "attention", "block"})
    expect_bits_of_passes_apart(engine_of("qwen3", "current", 2, {part}), part);
}

TEST(TensorTurns, HaveTheBitsOfPassesApartBesideOtherAxesAndStorages) {
  for (const int zero : {0, 1, 2}) {
    EngineConfig config = engine_of("llama", "current", 2, {"norm"});
    config.ranks.data = 2, config.ranks.zero = zero;
    if (zero < 2) config.optimizer->level = optim::Level::O3, config.optimizer->m = Storage::bf16;  // draws of both micro-batches
    expect_bits_of_passes_apart(config, format("stage {}", zero));
  }
  EngineConfig divided = engine_of("llama", "bf16", 2);
  divided.ranks.context = 2;
  expect_bits_of_passes_apart(divided, "parts of sequences");
  EngineConfig coded = engine_of("qwen2", "delayed", 4);
  coded.comm.tensor = parallel::TensorWire::e4m3, coded.precision.activations = scaling::SavedActivations::fp8;
  expect_bits_of_passes_apart(coded, "e4m3");
  EngineConfig experts = engine_of("qwen3_moe", "current", 2);
  experts.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  experts.shape.experts.balance = {.over = nn::Balance::Over::model, .loss = 0.05};
  expect_bits_of_passes_apart(experts, "experts");
}

// Two ranks that divide the experts, and those of two tensor ranks each.
EngineConfig divided_experts(const char* recipe, int tensor, const std::vector<std::string>& recompute = {}) {
  EngineConfig config = engine_of("qwen3_moe", recipe, tensor, recompute);
  config.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  config.shape.experts.balance = {.over = nn::Balance::Over::layer, .loss = 0.05};
  config.ranks.data = 2, config.ranks.expert = 2;
  return config;
}

TEST(ExpertTurns, HaveTheBitsOfPassesApart) {
  for (const char* recipe : {"fp32", "delayed", "block128"}) expect_bits_of_passes_apart(divided_experts(recipe, 1), recipe);
  for (const std::string part : {"norm", "block"}) expect_bits_of_passes_apart(divided_experts("block128", 1, {part}), part);
  for (const int zero : {1, 2}) {
    EngineConfig config = divided_experts("current", 1);
    config.ranks.zero = zero;
    expect_bits_of_passes_apart(config, format("stage {}", zero));
  }
  EngineConfig rounds = divided_experts("fp32", 1);
  rounds.ranks.expert_room = 1;
  expect_bits_of_passes_apart(rounds, "rounds");
  expect_bits_of_passes_apart(divided_experts("current", 2), "beside tensor ranks");
}

struct Span {
  std::string pass;
  double begin, end;
};

// The pieces of passes that a step's listener is told.
struct Pieces final : PhaseListener {
  void begins(StepPhase) override {}
  void piece(const std::string& pass, std::string_view, double begin, double end) override { all.push_back({pass, begin, end}); }
  // Whether an exchange begins in one pass, and another one computes a whole piece until it is joined.
  bool hide(const Span& e) const {
    const auto own = std::ranges::find_if(all, [&](const Span& s) { return s.begin <= e.begin && e.begin <= s.end; });
    return own != all.end() &&
           std::ranges::any_of(all, [&](const Span& s) { return s.pass != own->pass && s.begin >= e.begin && s.end <= e.end; });
  }
  std::vector<Span> all;
};

// Side work with the times of its exchanges, from begin to join.
class Timed final : public SideWork {
 public:
  explicit Timed(SideWork& work) : work_(work) {}
  Piece begin(Stream& stream, const Work& work) override {
    const double now = monotonic_seconds();
    const Piece piece = work_.begin(stream, work);
    at_[piece] = exchanges.size(), exchanges.push_back({"", now, now});
    return piece;
  }
  void join(Stream& stream, const Piece& piece) override {
    work_.join(stream, piece);
    exchanges[at_.at(piece)].end = monotonic_seconds();
  }
  void join(Stream& stream) override { work_.join(stream); }
  std::vector<Span> exchanges;

 private:
  SideWork& work_;
  std::map<Piece, std::size_t> at_;
};

TEST(TensorTurns, AnExchangeIsUnderWayWhileTheOtherMicroBatchComputes) {
  const EngineConfig config = turning(engine_of("llama", "current", 2));
  comm::run_on_threads({.ranks = 2, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    Stream side(e.stream);
    LateWork late(side, true);
    Timed timed(late);
    parallel::WorkInTurn in_turn(timed, e.axes.turns_of_rows());
    e.partition().set_beside(in_turn);
    StepRunner runner = begin_steps(e);
    Pieces pieces;
    runner.run(batches_of(0, 0, 3), {.learning_rate = 1e-2, .listener = &pieces});
    // Two pairs of passes over two blocks: four exchanges per block and pass. Beside those of the last backward there is no other pass.
    EXPECT_EQ(timed.exchanges.size(), 2u * 2 * (4 + 4) + 2 * 4);
    EXPECT_EQ(std::ranges::count_if(timed.exchanges, [&](const Span& x) { return pieces.hide(x); }), 2 * 2 * (4 + 4));
  });
}

TEST(TensorTurns, HaveTheMemoryAndTheWorkOfTheirPlan) {
  for (const auto& [recipe, zero, micro_batches] : {std::tuple("current", 0, 2), {"bf16", 1, 3}, {"block128", 2, 4}}) {
    EngineConfig config = turning(engine_of("llama", recipe, 2, {"norm"}));
    config.ranks.data = 2, config.ranks.zero = zero, config.planned_ranks = 2;
    const Target target = machine::machine_target(Device::cpu);
    const DryRun dry = dry_run(config, target, 1, micro_batches);
    EXPECT_TRUE(std::ranges::any_of(dry.plan, [](const scaling::PlanRow& row) { return row.path == "passes in turn"; }));
    comm::run_on_threads({.ranks = 4, .limit_seconds = 30}, [&](comm::Communicator& c) {
      Engine e(config, Device::cpu, target, &c);
      StepRunner runner = begin_steps(e);
      const auto step = [&](int s, bool measure) {
        const Work before = e.stream.work();
        runner.run(batches_of(s, e.axes.sequence_group(), micro_batches), {.learning_rate = 1e-2, .measure = measure});
        return e.stream.work() - before;
      };
      step(0, false);
      const Work real = step(1, false);
      step(2, true);
      evaluate_batch(e, batches_of(3, 0, 1).front());
      if (c.rank() > 0) return;
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe;
      EXPECT_EQ(dry.step.gemm_flops, real.gemm_flops) << recipe;
      EXPECT_EQ(dry.step.sent_bytes, real.sent_bytes) << recipe;
      EXPECT_EQ(dry.step.collectives, real.collectives) << recipe;
    });
  }
}

TEST(TensorTurns, AreRefusedWhereAnOrderOfGradientsWouldChange) {
  const auto refusal = [](const auto& change) -> std::string {
    EngineConfig config = turning(engine_of("llama", "current", 2));
    config.ranks.data = 2, change(config);
    config.planned_ranks = int(config.ranks.data);
    try {
      dry_run(config, {}, 1, 2);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](EngineConfig&) {}), "");
  EXPECT_EQ(refusal([](EngineConfig& c) { c.shape.tied = true; }),
            "ranks.tensor = 2: comm.turns = true: the parts of a tied embedding's gradient would be added in another order; set it to "
            "false, or model.tied = \"no\"");
  EXPECT_NE(refusal([](EngineConfig& c) { c.ranks.zero = 3; }).find("ranks.zero = 2"), std::string::npos);
  EXPECT_NE(refusal([](EngineConfig& c) {
              c.ranks.zero = 2, c.optimizer->level = optim::Level::O3, c.optimizer->m = Storage::bf16;
            }).find("optim.gradients = \"bf16\""),
            std::string::npos);
  EXPECT_NE(refusal([](EngineConfig& c) { c.ranks.pipeline = 2; }).find("ranks.pipeline = 1"), std::string::npos);
}

}  // namespace
}  // namespace octet::train
