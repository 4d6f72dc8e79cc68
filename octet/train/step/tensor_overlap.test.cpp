#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Exchanges of tensor ranks beside products. A GPU may run a piece of side work at any time between its begin and its join, so steps have
// the same bits where each piece runs at the first moment, and where it runs at the last one. Each piece has scratch of its own, as on a
// GPU, so memory that is written or reused in between changes results.

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

// Two steps of two micro-batches per rank.
Result steps_of(const EngineConfig& config, Order order) {
  Result out;
  comm::run_on_threads({.ranks = int(config.ranks.all()), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    Stream side(e.stream);
    QueuedWork first(side);
    LateWork late(side, order == Order::last);
    if (order == Order::first) e.partition().set_beside(first);
    if (order == Order::last || order == Order::unjoined) e.partition().set_beside(late);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < 2; ++s) {
      std::vector<data::Batch> batches;
      for (int m = 0; m < 2; ++m) batches.push_back(random_batch(1, 32, 61, 40 + std::uint64_t(10 * s + 2 * e.ranks().rank() + m)));
      runner.run(batches, {.learning_rate = 1e-2}, [&] {
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

}  // namespace
}  // namespace octet::train
