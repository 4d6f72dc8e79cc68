#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// Steps of several ranks, each a thread with an engine of its own, against one engine that runs all their micro-batches.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState;
using parallel::Wire;

// Micro-batches of a step on all ranks: 1, 2, 4 and 8 ranks have equal shares. Gradients are divided by a power of two, which is exact.
constexpr int all = 8;

std::vector<data::Batch> batches_of(int rank, int ranks) {
  std::vector<data::Batch> out;
  for (int i = rank; i < all; i += ranks) out.push_back(random_batch(1, 32, 61, 900 + std::uint64_t(i)));
  return out;
}

using Gradients = std::map<std::string, std::vector<float>>;
Gradients gradients_of(Engine& e) {
  Gradients out;
  const std::vector<float> flat = e.flat_gradients();
  auto at = flat.begin();
  for (const Parameter* p : e.parameters.list()) out[p->path] = {at, at + p->shape.count()}, at += p->shape.count();
  return out;
}

// As modules read it: copies of divided masters are values or codes.
std::vector<float> read_values(Engine& e, const Parameter& p) {
  if (!p.codes) return nn::flat_values(e.stream, std::vector{p.value});
  std::vector<float> out;
  for (std::int64_t i = 0; i < p.shape.count(); ++i) out.push_back(value_at(p.codes, i / p.shape[1], i % p.shape[1]));
  return out;
}

struct Result {
  Gradients gradients;  // of the last step
  SavedState state;     // after it
  Gradients weights;    // as modules read them
  Readout shown;
};

Engine engine_of(const EngineConfig& config, comm::Communicator* ranks) {
  return Engine(config, Device::cpu, machine::machine_target(Device::cpu), ranks);
}

// Steps from equal weights on. change(rank, micro-batches): of the last step.
template <class Change>
std::vector<Result> steps_on(int ranks, const EngineConfig& config, int steps, const Change& change) {
  std::vector<Result> out;
  out.resize(std::size_t(ranks));
  comm::run_on_threads({.ranks = ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    StepRunner runner = begin_steps(e);
    Result& result = out[std::size_t(c.rank())];
    for (int s = 1; s <= steps; ++s) {
      std::vector<data::Batch> batches = batches_of(c.rank(), ranks);
      if (s == steps) change(c.rank(), batches);
      runner.run(batches, {.learning_rate = 1e-2}, [&] { result.gradients = gradients_of(e), result.shown = read_out(e); });
    }
    result.state = SavedState::of(e);
    for (const Parameter* p : e.parameters.list()) result.weights[p->path] = read_values(e, *p);
  });
  return out;
}
std::vector<Result> steps_on(int ranks, const EngineConfig& config, int steps = 1) {
  return steps_on(ranks, config, steps, [](int, std::vector<data::Batch>&) {});
}

// Sums in FP64 of what each micro-batch gives alone, and of the magnitudes.
struct Exact {
  std::map<std::string, std::vector<double>> sums, magnitudes;
};
Exact exact_sums(const EngineConfig& config) {
  Exact out;
  for (int i = 0; i < all; ++i) {
    Engine e = engine_of(config, nullptr);
    StepRunner runner = begin_steps(e);
    runner.run(std::vector{batches_of(i, all)[0]}, {.learning_rate = 0}, [&] {
      for (const auto& [path, values] : gradients_of(e)) {
        auto &sum = out.sums[path], &size = out.magnitudes[path];
        sum.resize(values.size()), size.resize(values.size());
        for (std::size_t k = 0; k < values.size(); ++k) sum[k] += double(values[k]) / all, size[k] += std::fabs(double(values[k])) / all;
      }
    });
  }
  return out;
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares);
}

class RecipeOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RecipeOnRanks, ::testing::Values("fp32", "bf16", "current", "rowwise", "block128", "mxfp8"));

// Weights are equal, so a micro-batch has the same codes on any rank. An element is a sum over all micro-batches and the tokens of each, in
// FP32, in an order that depends on the ranks: each micro-batch enters by an addition, which rounds by at most 2^-24 of a partial sum. A
// GEMM that adds to what is there begins its sum of 32 products with it; so does a sum over columns.
TEST_P(RecipeOnRanks, GradientsAreTheSumsOfAllMicroBatchesAtAnyNumberOfRanks) {
  EngineConfig config = small_engine("llama", GetParam());
  config.optimizer->max_grad_norm = 0, config.optimizer->allow_unsafe = true;
  // Sharded masters are read as copies in BF16, unless the codes that layers read are made of the masters.
  EngineConfig rounded = config;
  const bool coded = GetParam() == "current" || GetParam() == "block128";
  if (GetParam() != "fp32" && !coded) rounded.optimizer->master = Storage::bf16_nearest;
  const Exact of_masters = exact_sums(config), of_copies = exact_sums(rounded);
  for (const auto& [ranks, stage] : {std::pair{1, 0}, {2, 0}, {4, 0}, {8, 0}, {2, 1}, {4, 1}, {2, 2}, {8, 2}, {2, 3}, {4, 3}}) {
    config.ranks.zero = stage;
    const Exact& exact = stage > 0 && ranks > 1 ? of_copies : of_masters;
    const std::vector<Result> results = steps_on(ranks, config);
    for (const auto& [path, sum] : exact.sums)
      for (std::size_t i = 0; i < sum.size(); ++i)
        ASSERT_NEAR(double(results[0].gradients.at(path)[i]), sum[i], 2 * (all + 32) * 0x1p-24 * exact.magnitudes.at(path)[i] + 1e-12)
            << path << " " << i << " of " << ranks << " ranks, stage " << stage;
    for (const Result& r : results) {
      EXPECT_TRUE(stage == 3 || r.weights == results[0].weights) << ranks << " ranks, stage " << stage;
      EXPECT_TRUE(stage > 0 || r.state == results[0].state) << ranks << " ranks";
    }
  }
}

// Of the root mean square over all gradients of matrices: one rounding of BF16 per rank, or E4M3's of parallel/eight_bit_sum.hpp; a scale
// per tensor wastes range on most elements.
TEST(Ranks, GradientsInEveryFormatOnTheWireAreNearTheirSums) {
  EngineConfig config = small_engine("llama", "fp32");
  config.shape.layers = 1, config.shape.width = 256, config.shape.hidden = 800;  // two matrices above SharedScaleSum::fewest_values
  const Exact exact = exact_sums(config);
  for (const auto& [wire, most] : {std::pair{Wire::f32, 1e-6},
                                   {Wire::bf16, 4 * 0x1p-9},
                                   {Wire::e4m3, 0.05},
                                   {Wire::e4m3_shared, 0.08},
                                   {Wire::e4m3_prescaled, 0.08},
                                   {Wire::e4m3_postscaled, 0.2}}) {
    config.comm.gradients = wire;
    const std::vector<Result> results = steps_on(4, config);
    double error = 0, size = 0;
    for (const auto& [path, sum] : exact.sums) {
      std::vector<double> difference(sum);
      for (std::size_t i = 0; i < sum.size(); ++i) difference[i] -= double(results[0].gradients.at(path)[i]);
      error += std::pow(norm_of(difference), 2), size += std::pow(norm_of(sum), 2);
    }
    EXPECT_LE(std::sqrt(error / size), most) << name(wire);
    if (wire != Wire::f32) {
      EXPECT_GE(std::sqrt(error / size), most / 100) << name(wire) << " was not used";
    }
    for (const Result& r : results) EXPECT_EQ(r.state, results[0].state) << name(wire);
  }
}

TEST(Ranks, WithGradientsInEveryStorageHaveTheSameStateBitByBit) {
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor}) {
    EngineConfig config = small_engine("llama", "delayed");
    config.precision.options.history = 4;
    config.optimizer->gradients = storage, config.optimizer->level = optim::Level::O3;
    const std::vector<Result> results = steps_on(2, config, 3);
    for (const Result& r : results) EXPECT_EQ(r.state, results[0].state) << name(storage);
    EXPECT_EQ(results[0].shown.step.skip, 0);
  }
}

TEST(Ranks, ShareTheMeanLossAndTheNorm) {
  const EngineConfig config = small_engine("gpt2", "current");
  const Result one = steps_on(1, config)[0];
  for (const Result& r : steps_on(4, config)) {
    EXPECT_NEAR(r.shown.loss, one.shown.loss, 1e-6 * one.shown.loss);
    EXPECT_NEAR(r.shown.step.gradient_norm, one.shown.step.gradient_norm, 1e-5 * one.shown.step.gradient_norm);
  }
}

TEST(Ranks, AllSkipAStepWhoseLossIsNotFiniteOnOne) {
  const EngineConfig config = small_engine("llama", "current");
  const std::vector<Result> before = steps_on(2, config, 1);
  const std::vector<Result> after = steps_on(2, config, 2, [](int rank, std::vector<data::Batch>& batches) {
    if (rank == 1) batches[2].targets[5] = 100000;  // no token: its loss is NaN
  });
  for (const Result& r : after) {
    EXPECT_NE(r.shown.step.skip, 0);
    EXPECT_EQ(r.state, after[0].state);
    EXPECT_EQ(r.shown.step.updates, before[0].shown.step.updates) << "no rank applied it";
  }
}

// Rank 0 has no target, so all its gradients are 0, and rank 1 overflows at the first loss scale.
TEST(Ranks, AllHalveTheLossScaleAfterAnOverflowOnOne) {
  EngineConfig config = small_engine("llama", "fp16");
  config.loss_scale.start = 0x1p24;
  const auto without_targets = [](int rank, std::vector<data::Batch>& batches) {
    for (data::Batch& b : batches)
      if (rank == 0) b.targets.assign(b.targets.size(), -1);
  };
  const Result alone = steps_on(1, config, 1, [&](int, auto& batches) { without_targets(0, batches); })[0];
  EXPECT_EQ(alone.shown.step.gradient_norm, 0) << "rank 0 does not overflow by itself";
  for (const int stage : {0, 1, 2}) {
    config.ranks.zero = stage;
    const std::vector<Result> first = steps_on(2, config, 1, without_targets), later = steps_on(2, config, 12);
    for (const Result& r : first) {
      EXPECT_NE(r.shown.step.skip, 0) << "stage " << stage;
      EXPECT_TRUE(std::isfinite(r.shown.loss)) << "stage " << stage;
      EXPECT_EQ(r.shown.loss_scale.now, 0x1p24f) << "stage " << stage;
      EXPECT_EQ(r.shown.loss_scale.next, 0x1p23f) << "stage " << stage;
      EXPECT_EQ(r.shown.step.updates, 0) << "stage " << stage;
    }
    for (const Result& r : later) {
      EXPECT_EQ(r.shown.step.skip, 0) << "stage " << stage << ": the scale has fallen far enough";
      EXPECT_GT(r.shown.step.updates, 0) << "stage " << stage;
      EXPECT_EQ(r.shown.loss_scale.next, later[0].shown.loss_scale.next) << "stage " << stage;
      EXPECT_EQ(r.weights, later[0].weights) << "stage " << stage;
      EXPECT_TRUE(stage > 0 || r.state == later[0].state);
    }
    EXPECT_EQ(first[0].weights, first[1].weights) << "stage " << stage;
  }
  config.ranks.zero = 3;
  const std::string refusal = octet::testing::error_of<ConfigError>([&] { steps_on(2, config); });
  EXPECT_TRUE(
      octet::testing::has(refusal, "ranks.zero = 3: a recipe with FP16 activations keeps a copy of all weights; set ranks.zero = 2"))
      << refusal;
}

TEST(Ranks, CorrectGradientsByTheTargetsOfAllWhereDocumentsAreMasked) {
  EngineConfig config = small_engine("llama", "fp32");
  config.document_mask = true;
  const auto masked = [](int rank, int ranks, std::vector<data::Batch>& batches) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      data::Batch& b = batches[i];
      b.document_mask = true, b.document_starts.assign(b.inputs.size(), 0);
      const std::size_t number = std::size_t(rank) + i * std::size_t(ranks);
      for (std::size_t t = 0; t < number; ++t) b.targets[2 * t] = -1;  // unequal numbers of targets
    }
  };
  const Result one = steps_on(1, config, 1, [&](int r, auto& b) { masked(r, 1, b); })[0];
  for (const Result& r : steps_on(4, config, 1, [&](int rank, auto&b) { masked(rank, 4, b); })) {
    EXPECT_NEAR(r.shown.loss, one.shown.loss, 1e-6 * one.shown.loss);
    EXPECT_NEAR(r.shown.step.gradient_norm, one.shown.step.gradient_norm, 1e-5 * one.shown.step.gradient_norm);
  }
}

// In FP32 the same additions happen, in the same order of ranks: every stage has the same bits where clipping has the same norm, so there
// is none here. Storages with a scale per tensor take it from the maxima of all ranks.
TEST(Ranks, ThatDivideMastersAndMomentsUpdateAsThoseThatDoNot) {
  for (const auto level : {optim::Level::O0, optim::Level::O1, optim::Level::O2, optim::Level::O3}) {
    EngineConfig config = small_engine("llama", "fp32");
    config.optimizer->level = level, config.optimizer->max_grad_norm = 0;
    const std::vector<Result> whole = steps_on(3, config, 3);
    config.ranks.zero = 1;
    const std::vector<Result> divided = steps_on(3, config, 3);
    EXPECT_EQ(whole[0].weights, divided[0].weights) << "level " << int(level);
    for (const Result& r : divided) EXPECT_EQ(r.weights, divided[0].weights) << "every rank has gathered the same copies";
  }
}

// With one micro-batch per rank gradients are the same sums at every stage. Embedding and head are rounded to BF16 before they are read,
// divided or not.
TEST(Ranks, ThatReadCodesOfDividedMastersComputeTheBitsOfThoseThatDivideNothing) {
  for (const char* recipe : {"current", "delayed", "global", "block128"}) {
    EngineConfig config = small_engine("llama", recipe);
    config.precision.options.history = 4, config.optimizer->max_grad_norm = 0;
    const Result whole = steps_on(all, config, 3)[0];
    for (const int stage : {1, 2, 3}) {
      config.ranks.zero = stage;
      const Result divided = steps_on(all, config, 3)[0];
      EXPECT_EQ(whole.shown.loss, divided.shown.loss) << recipe << ", stage " << stage;
      EXPECT_EQ(whole.gradients, divided.gradients) << recipe << ", stage " << stage;
    }
  }
}

// Steps, one of which is skipped, on two ranks. diagnosed: its forward and backward run again, to find what was not finite.
std::vector<SavedState> states_after_a_skip(const EngineConfig& config, bool diagnosed) {
  std::vector<SavedState> out(2);
  comm::run_on_threads({.ranks = 2, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    StepRunner runner = begin_steps(e);
    const bool alike = config.ranks.of_sequence() > 1;  // they train on the same sequences
    const std::vector<data::Batch> batches = batches_of(alike ? 0 : c.rank(), alike ? 1 : 2);
    for (int s = 1; s <= 5; ++s) {
      StepOptions options{.learning_rate = 1e-2};
      options.before_update = [&] { *static_cast<std::int64_t*>(e.nonfinite().data) = s == 3; };
      runner.run(batches, options, [&] {
        EXPECT_EQ(e.optimizer->last(e.stream).skip, s == 3 ? 1.0f : 0.0f);
        EXPECT_EQ(s == 3 && diagnosed ? first_nonfinite(e, batches) : "", "");
      });
    }
    out[std::size_t(c.rank())] = SavedState::of(e);
  });
  return out;
}

class SkipOnRanks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SkipOnRanks, ::testing::Values("bf16", "current", "delayed", "rowwise", "block128", "mxfp8"));

TEST_P(SkipOnRanks, ADiagnosisChangesNoBit) {
  for (const parallel::RanksConfig& ranks :
       {parallel::RanksConfig{}, parallel::RanksConfig{.zero = 1}, parallel::RanksConfig{.zero = 2}, parallel::RanksConfig{.zero = 3},
        parallel::RanksConfig{.tensor = 2}, parallel::RanksConfig{.pipeline = 2}}) {
    EngineConfig config = small_engine("llama", GetParam());
    config.precision.options.history = 4, config.ranks = ranks;
    EXPECT_TRUE(states_after_a_skip(config, true) == states_after_a_skip(config, false)) << ranks.axes_text() << ", stage " << ranks.zero;
  }
}

// Two tensor ranks share the only key head: their copies take equal sums, which 8-bit gradients of a part round by draws.
TEST(Ranks, UpdateCopiedKeyHeadsAlikeUnderDividedGradientsOfEightBits) {
  EngineConfig config = small_engine("llama", "bf16");
  config.shape.kv_heads = 1, config.optimizer->gradients = Storage::e4m3;
  config.ranks = {.data = 2, .tensor = 2, .zero = 2};
  std::vector<std::vector<float>> copies(4);
  comm::run_on_threads({.ranks = 4, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e = engine_of(config, &c);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < 3; ++s) runner.run(batches_of(e.ranks().rank(), 2), {.learning_rate = 1e-2});
    for (const Parameter* p : e.parameters.list()) {
      if (p->cut.copies == 1 || p->cut.alone == 0) continue;
      const std::vector<float> values = read_values(e, *p);
      copies[std::size_t(c.rank())].insert(copies[std::size_t(c.rank())].end(), values.begin() + p->cut.alone, values.end());
    }
  });
  ASSERT_FALSE(copies[0].empty());
  for (const std::vector<float>& c : copies) EXPECT_TRUE(c == copies[0]);
}

// Sums of gradients in 8 bits are rounded once more, into those of the own part, by at most a spacing of E4M3 each time.
TEST(Ranks, ThatDivideSumsOfGradientsHaveThemInEveryStorage) {
  for (const auto& [storage, most] : {std::pair{Storage::f32, 1e-6}, {Storage::bf16, 8 * 0x1p-9}, {Storage::e4m3, 0.15}}) {
    EngineConfig config = small_engine("llama", "fp32");
    config.optimizer->gradients = storage, config.ranks.zero = 2;
    const Exact exact = exact_sums(small_engine("llama", "fp32"));
    const std::vector<Result> results = steps_on(2, config);
    double error = 0, size = 0;
    for (const auto& [path, sum] : exact.sums) {
      std::vector<double> difference(sum);
      for (std::size_t i = 0; i < sum.size(); ++i) difference[i] -= double(results[0].gradients.at(path)[i]);
      error += std::pow(norm_of(difference), 2), size += std::pow(norm_of(sum), 2);
    }
    EXPECT_LE(std::sqrt(error / size), most) << name(storage);
    EXPECT_EQ(results[0].weights, results[1].weights) << name(storage);
  }
}

TEST(Ranks, SendTheBytesOfTheirFormat) {
  const auto sent = [](Wire wire, Storage storage) {
    EngineConfig config = small_engine("llama", "current");
    config.shape.width = 256, config.shape.hidden = 768, config.shape.vocabulary = 64;
    config.optimizer->gradients = storage, config.comm.gradients = wire;
    std::int64_t bytes = 0;
    comm::run_on_threads({.ranks = 4, .limit_seconds = 30}, [&](comm::Communicator& c) {
      Engine e = engine_of(config, &c);
      StepRunner runner = begin_steps(e);
      const std::int64_t before = c.traffic().bytes;
      runner.run(batches_of(c.rank(), 4), {.learning_rate = 1e-2});
      if (c.rank() == 0) bytes = c.traffic().bytes - before;
    });
    return double(bytes);
  };
  const double f32 = sent(Wire::stored, Storage::f32);
  EXPECT_NEAR(sent(Wire::bf16, Storage::f32) / f32, 0.5, 0.01);
  EXPECT_NEAR(sent(Wire::e4m3, Storage::f32) / f32, 8.0625 / 32, 0.01);
  EXPECT_NEAR(sent(Wire::f32, Storage::e4m3) / f32, 1, 0.01);
}

}  // namespace
}  // namespace octet::train
