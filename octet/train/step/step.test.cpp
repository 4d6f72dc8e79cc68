#include "octet/train/step/step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::SavedState;

class EveryRecipe : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Step, EveryRecipe,
                         ::testing::Values("fp32", "bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"));

const std::vector<std::string> recomputed_parts[] = {{},      {"norm"},      {"activation"},       {"norm", "activation"},
                                                     {"mlp"}, {"attention"}, {"mlp", "attention"}, {"block"}};

std::vector<float> gradients_of(const EngineConfig& config) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  std::vector<float> out;
  train_steps(e, 2).run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3},
                        [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
  return out;
}

TEST_P(EveryRecipe, StaleGradientsAreStoredOverAsIfTheyHadBeenZero) {
  for (const char* family : {"llama", "gpt2"})
    for (const Storage gradients : {Storage::f32, Storage::bf16}) {
      EngineConfig config = small_engine(family, GetParam());
      config.optimizer->gradients = gradients;
      std::vector<float> found[2];
      for (const bool stored : {false, true}) {
        Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
        StepRunner runner = train_steps(e, 1);
        for (Parameter* p : e.parameters.list()) {
          const Tensor data = p->gradient.stored().values();
          EXPECT_NE(p->gradient.complete(), p->gradient.begins_with_product()) << p->path;
          if (!p->gradient.begins_with_product()) continue;
          set_values(e.stream, data, std::vector<float>(std::size_t(data.count()), stored ? NAN : 0.0f).data());
          p->gradient.begin(stored ? Gradient::Contents::stale : Gradient::Contents::zero);
        }
        runner.run(std::vector{random_batch(2, 32, 61, 9), random_batch(2, 32, 61, 10)}, {.learning_rate = 1e-3},
                   [&] { found[stored] = nn::flat_values(e.stream, e.parameters.gradients()); });
      }
      EXPECT_EQ(found[0], found[1]) << family << " " << to_text(gradients);
    }
}

TEST_P(EveryRecipe, ADryRunNeedsTheMemoryThatARealRunTakesToTheByte) {
  for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"})
    for (const auto& parts : recomputed_parts) {
      EngineConfig config = small_engine(family, GetParam(), nn::Recompute::named(parts));
      config.precision.weights = parts.empty() ? scaling::WeightCodes::cached : scaling::WeightCodes::on_demand;
      config.model.recompute_layers = parts.size() == 1 ? 1 : 0;
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      train_steps(e, 2, 2);
      evaluate_batch(e, random_batch(2, 32, 61, 1));
      EXPECT_EQ(dry.memory.total, e.stream.arena().peak().total) << family << ::testing::PrintToString(parts);
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << family;
    }
}

TEST_P(EveryRecipe, ADryRunTellsMemoryAndWorkOfAnyNumberOfMicroBatches) {
  for (const int accumulate : {1, 2, 3, 4}) {
    const EngineConfig config = small_engine("llama", GetParam());
    const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 4 / accumulate, accumulate);
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = train_steps(e, 1, accumulate);
    const std::vector micro_batches(std::size_t(accumulate), random_batch(4 / accumulate, 32, 61, 1));
    const Work before = e.stream.work();
    runner.run(micro_batches, {.learning_rate = 1e-2});
    const Work real = e.stream.work() - before;
    runner.run(micro_batches, {.learning_rate = 1e-2, .measure = true});
    EXPECT_EQ(dry.step.ops, real.ops) << accumulate;
    EXPECT_EQ(dry.step.flops, real.flops) << accumulate;
    EXPECT_EQ(dry.step.gemm_flops, real.gemm_flops) << accumulate;
    EXPECT_EQ(dry.step.bytes, real.bytes) << accumulate;
    evaluate_batch(e, random_batch(4 / accumulate, 32, 61, 1));
    EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << accumulate;
  }
}

TEST_P(EveryRecipe, RecomputingGivesTheSameGradientsBitForBit) {
  for (const char* family : {"llama", "qwen3", "gpt2"}) {
    const std::vector<float> gradients = gradients_of(small_engine(family, GetParam()));
    for (const auto& parts : recomputed_parts)
      for (const std::int64_t layers : {0, parts.empty() ? 0 : 1}) {
        EngineConfig config = small_engine(family, GetParam(), nn::Recompute::named(parts));
        config.model.recompute_layers = layers;
        EXPECT_EQ(gradients_of(config), gradients) << family << ::testing::PrintToString(parts) << layers;
      }
  }
}

TEST_P(EveryRecipe, CodesOfWeightsThatAreMadeForEachGemmGiveTheSameGradientsAndMeasurements) {
  EngineConfig config = small_engine("qwen2", GetParam());
  std::vector<float> amax[2], gradients[2];
  for (const bool made : {false, true}) {
    config.precision.weights = made ? scaling::WeightCodes::on_demand : scaling::WeightCodes::cached;
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    train_steps(e, 3, 2).run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3}, [&] {
      gradients[made] = nn::flat_values(e.stream, e.parameters.gradients());
      const Tensor seen = e.precision.slots().amax();
      amax[made].assign(seen.f32(), seen.f32() + seen.count());
    });
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(amax[0], amax[1]);
}

TEST(Calibration, BeginsWithScalesThatFitAndLeavesNothingElse) {
  for (const std::string recipe : {"delayed", "global"}) {
    Engine e(small_engine("llama", recipe), Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = begin_steps(e);
    const data::Batch batch = random_batch(4, 32, 61, 1);
    ASSERT_TRUE(runner.calibrate(1, [&] { return batch; }));
    for (const Parameter* p : e.parameters.list()) {
      for (const float g : nn::flat_values(e.stream, std::vector{p->gradient.stored()}))
        ASSERT_TRUE(!p->gradient.complete() || g == 0) << recipe << " " << p->path;
    }
    EXPECT_EQ(*e.loss_sums().sum.as<double>(), 0) << recipe;
    const scaling::SlotTable& slots = e.precision.slots();
    for (int i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(*slots.amax(i).f32() != 0, slots.slots()[std::size_t(i)].operand == scaling::Operand::weight)
          << recipe << " " << slots.slots()[std::size_t(i)].path;
      EXPECT_EQ(slots.health(i)->saturated + slots.health(i)->nonfinite, 0) << recipe;
    }
    // The same batch meets scales that were made of its own maxima.
    Readout seen;
    runner.run(std::vector{batch}, {.learning_rate = 0}, [&] { seen = read_out(e); });
    float most = 0;
    for (int i = 0; i < slots.size(); ++i) {
      const float reach =
          seen.amax[std::size_t(i)] * seen.health[std::size_t(i)].scale_max / format_max(slots.slots()[std::size_t(i)].format);
      most = std::max(most, reach);
      if (recipe == "delayed") {
        EXPECT_NEAR(reach, 1, 0.1) << slots.slots()[std::size_t(i)].path << " " << name(slots.slots()[std::size_t(i)].operand);
      }
    }
    EXPECT_NEAR(most, 1, 0.1) << recipe;
  }
}

// What scales are after calibration on a step of so many micro-batches, and how many of them it asked for.
std::vector<float> calibrated(std::int64_t accumulate, std::int64_t& asked, bool (*stopped)() = nullptr) {
  EngineConfig config = small_engine("llama", "delayed");
  config.precision.options.calibration = 3;
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  asked = 0;
  const bool whole = begin_steps(e).calibrate(
      accumulate, [&] { return random_batch(1, 32, 61, std::uint64_t(asked++)); }, stopped);
  EXPECT_EQ(whole, stopped == nullptr);
  const Tensor maxima = e.precision.slots().history();
  return {maxima.f32(), maxima.f32() + maxima.count()};
}

TEST(Calibration, ReadsAsManyMicroBatchesAsItUsesAndDividesGradientsByAllTokensOfTheStep) {
  std::int64_t asked = 0;
  calibrated(2, asked);
  EXPECT_EQ(asked, 2);
  const auto of_three = calibrated(3, asked);
  EXPECT_EQ(asked, 3);
  const auto of_four = calibrated(4, asked);
  EXPECT_EQ(asked, 3);
  EXPECT_NE(of_three, of_four);
}

TEST(Calibration, IsGivenUpBeforeTheNextPass) {
  std::int64_t asked = 0;
  const auto none = calibrated(4, asked, [] { return true; });
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(std::all_of(none.begin() + std::ptrdiff_t(none.size()) / 1024, none.end(), [](float x) { return x == 0; }))
      << "no past maximum";
  static int left;
  left = 2;
  calibrated(4, asked, [] { return left-- == 0; });
  EXPECT_EQ(asked, 2);
}

TEST(Plan, TellsHowWeightsGradientsAndMomentsAreStored) {
  EngineConfig config = small_engine("llama", "current");
  config.optimizer->m = Storage::bf16, config.optimizer->v = Storage::f16;
  const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 1, 1);
  const auto precision_of = [&](const char* what) {
    for (const scaling::PlanRow& row : dry.plan)
      if (row.path == what) return row.precision;
    return std::string("no such row");
  };
  EXPECT_EQ(precision_of("master weights"), "f32");
  EXPECT_EQ(precision_of("weight gradients"), "f32");
  EXPECT_EQ(precision_of("first moments"), "bf16");
  EXPECT_EQ(precision_of("second moments"), "f16");
}

TEST(Plan, SaysWhichRecipesAGpuOnlyEmulatesAndHowMuchOfTheWork) {
  const auto emulation = [](const char* recipe, const Target& target) {
    std::string rows;
    for (const scaling::PlanRow& row : dry_run(small_engine("llama", recipe), target, 2, 1).plan)
      if (row.precision == "decoded") rows += row.why;
    return rows;
  };
  const Target gpu{.device = Device::cuda, .multiprocessors = 132};
  for (const char* native : {"bf16", "delayed", "current", "rowwise", "block128"}) EXPECT_EQ(emulation(native, gpu), "") << native;
  EXPECT_NE(emulation("mxfp8", gpu).find("emulation: this GPU does not multiply such codes as they are"), std::string::npos);
  EXPECT_EQ(emulation("mxfp8", {}), "");
  const Target blackwell{.device = Device::cuda, .multiprocessors = 148, .generation = 10};
  EXPECT_EQ(emulation("mxfp8", blackwell), "");
  EXPECT_NE(emulation("block128", blackwell), "");
}

TEST(Plan, ARecipeThatAGpuOnlyEmulatesRunsOnlyWhenThatIsAskedFor) {
  int ranks = 1;  // at stage ranks - 1
  const auto refusal = [&](const Target& target, const scaling::PrecisionConfig& config) -> std::string {
    try {
      EngineConfig engine = small_engine("llama", config.recipe);
      engine.precision = config, engine.planned_ranks = ranks, engine.ranks.zero = ranks - 1;
      require_native(dry_run(engine, target, 2, 1), config);
    } catch (const DeviceError& e) {
      return e.what();
    }
    return "";
  };
  for (ranks = 1; ranks <= 4; ++ranks) {
    const Target gpu{.device = Device::cuda, .multiprocessors = 132};
    EXPECT_NE(refusal(gpu, {.recipe = "mxfp8"}).find("set recipe.emulation = true"), std::string::npos);
    EXPECT_EQ(refusal(gpu, {.recipe = "mxfp8", .emulation = true}), "");
    EXPECT_EQ(refusal(gpu, {.recipe = "current"}), "");
    EXPECT_EQ(refusal({}, {.recipe = "mxfp8"}), "");
    const auto rule = [](std::vector<std::string> operands, const char* recipe) {
      return scaling::PrecisionConfig{.recipe = "current",
                                      .rules = {{.path = "layers.0.*", .operands = std::move(operands), .recipe = recipe}}};
    };
    EXPECT_EQ(refusal(gpu, rule({}, "bf16")), "");
    EXPECT_EQ(refusal(gpu, rule({}, "block128")), "");
    EXPECT_NE(refusal(gpu, rule({"dy"}, "bf16")).find("recipe.name = \"current\" with recipe.rules: this GPU"), std::string::npos);
    EXPECT_NE(refusal(gpu, rule({"w"}, "block128")).find("set recipe.emulation = true"), std::string::npos);
    EXPECT_EQ(refusal({}, rule({"dy"}, "bf16")), "");
  }
}

TEST(Plan, CountsMomentsThatAGpuKeepsInTheHostsMemoryApart) {
  EngineConfig config = small_engine("llama", "current");
  const Target gpu{.device = Device::cuda, .multiprocessors = 132};
  const DryRun here = dry_run(config, gpu, 1, 1);
  config.optimizer->offload = true;
  const DryRun offloaded = dry_run(config, gpu, 1, 1), on_cpu = dry_run(config, {}, 1, 1);
  EXPECT_EQ(here.memory.host, 0u);
  EXPECT_GE(offloaded.memory.host, std::size_t(2 * 4 * here.parameters));
  EXPECT_EQ(here.memory.total, offloaded.memory.total + offloaded.memory.host);
  EXPECT_EQ(on_cpu.memory.host, 0u);
}

TEST_P(EveryRecipe, TwoRunsOfOneSeedGiveTheSameBits) {
  const octet::testing::WithThreads three(3);
  std::vector<float> weights[2];
  for (auto& w : weights) {
    Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
    train_steps(e, 3);
    w = nn::flat_values(e.stream, e.parameters.values());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(EveryRecipe, EvaluationChangesNothing) {
  std::vector<float> weights[2];
  for (const bool evaluating : {false, true}) {
    Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = train_steps(e, 1);
    const double first = evaluating ? evaluate_batch(e, random_batch(2, 32, 61, 5)).loss : 0;
    if (evaluating) {
      EXPECT_EQ(first, evaluate_batch(e, random_batch(2, 32, 61, 5)).loss);
    }
    for (int s = 0; s < 2; ++s) {
      runner.run(std::vector{random_batch(4, 32, 61, std::uint64_t(s))}, {.learning_rate = 1e-2});
      if (evaluating) evaluate_batch(e, random_batch(2, 32, 61, 5));
    }
    weights[evaluating] = nn::flat_values(e.stream, e.parameters.values());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(EveryRecipe, AStepThatIsNotFiniteChangesNoBitAndNamesItsModule) {
  Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = train_steps(e, 2);
  Parameter* poisoned = nullptr;
  for (Parameter* p : e.parameters.list())
    if (p->path == "layers.1.norm2.weight") poisoned = p;
  ASSERT_NE(poisoned, nullptr);
  const float healthy = poisoned->value.values().f32()[3];
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    poisoned->value.values().f32()[3] = bad;
    const std::vector<float> before = nn::flat_values(e.stream, e.parameters.values());
    const std::vector<data::Batch> batches{random_batch(4, 32, 61, 3)};
    runner.run(batches, {.learning_rate = 1e-2}, [&] {
      EXPECT_NE(e.optimizer->last(e.stream).skip, 0.0f) << bad;
      const std::vector<float> after = nn::flat_values(e.stream, e.parameters.values());
      EXPECT_EQ(0, std::memcmp(before.data(), after.data(), before.size() * sizeof(float)));
      EXPECT_EQ(first_nonfinite(e, batches), "layers.1.norm2.weight");
    });
  }
  poisoned->value.values().f32()[3] = healthy;
  runner.run(std::vector{random_batch(4, 32, 61, 4)}, {.learning_rate = 1e-2});
  EXPECT_EQ(e.optimizer->last(e.stream).skip, 0.0f) << "training resumes once the fault is gone";
}

// Weights, moments, scales and their histories: the run continues as if the batch had not been.
TEST_P(EveryRecipe, AStepBeyondALimitChangesNoBit) {
  SavedState ends[2];
  for (const bool outlier : {false, true}) {
    Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = train_steps(e, 2);
    if (outlier)
      for (const optim::StepLimits limits : {optim::StepLimits{.loss = 0.5f}, optim::StepLimits{.gradient_norm = 1e-6f}}) {
        runner.run(std::vector{random_batch(4, 32, 61, 77)}, {.learning_rate = 1e-2, .limits = limits});
        EXPECT_EQ(e.optimizer->last(e.stream).skip, ops::adamw_skip_limit);
      }
    runner.run(std::vector{random_batch(4, 32, 61, 4)}, {.learning_rate = 1e-2, .limits = {100, 100}});
    ends[outlier] = SavedState::of(e);
  }
  EXPECT_TRUE(ends[0] == ends[1]);
}

TEST(Step, FourMicroBatchesOfTwoAreOneOfEight) {
  // Sums over tokens are regrouped, nothing else changes: in FP32 a gradient is a sum of T products, so each of the two lies within
  // gamma_T times the sum of magnitudes of the exact one, and a bound on the difference relative to the largest gradient follows from
  // conditioning by the layers above; depth D multiplies it.
  const EngineConfig config = small_engine("llama", "fp32");
  std::vector<float> gradients[2];
  double losses[2];
  const data::Batch whole = random_batch(8, 32, 61, 11);
  for (const bool split : {false, true}) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = begin_steps(e);
    std::vector<data::Batch> batches;
    for (std::int64_t part = 0; part < (split ? 4 : 1); ++part) {
      const std::int64_t rows = split ? 2 : 8, begin = part * rows * 32, end = begin + rows * 32;
      data::Batch b;
      b.rows = rows, b.length = 32;
      b.inputs.assign(whole.inputs.begin() + begin, whole.inputs.begin() + end);
      b.targets.assign(whole.targets.begin() + begin, whole.targets.begin() + end);
      batches.push_back(b);
    }
    runner.run(batches, {.learning_rate = 1e-3}, [&] {
      gradients[split] = nn::flat_values(e.stream, e.parameters.gradients());
      losses[split] = *e.mean_loss().f32();
    });
  }
  const double tokens = 256, depth = 16;  // GEMMs between the loss and the first weight
  const double gamma = tokens * 0x1p-24 / (1 - tokens * 0x1p-24) * depth;
  double norm = 0, difference = 0;
  for (std::size_t i = 0; i < gradients[0].size(); ++i)
    norm += double(gradients[0][i]) * gradients[0][i], difference += std::pow(double(gradients[0][i]) - gradients[1][i], 2);
  EXPECT_GT(norm, 0);
  EXPECT_LE(std::sqrt(difference), gamma * std::sqrt(norm));
  EXPECT_NEAR(losses[0], losses[1], gamma * losses[0]);
}

TEST(Step, AnUntrainedModelKnowsNothing) {
  Engine e(small_engine("gpt2", "bf16"), Device::cpu, machine::machine_target(Device::cpu));
  e.parameters.initialize(e.stream, 7);
  const Evaluation out = evaluate_batch(e, random_batch(4, 32, 61, 3));
  EXPECT_EQ(out.tokens, 128);
  EXPECT_NEAR(out.loss, std::log(61.0), 0.2);
}

TEST(Step, PaddingOfTheVocabularyIsNeverPredictedAndNeverTrained) {
  Engine e(small_engine("llama", "fp32"), Device::cpu, machine::machine_target(Device::cpu));
  begin_steps(e).run(std::vector{random_batch(4, 32, 61, 3)}, {.learning_rate = 1e-3}, [&] {
    for (const Parameter* p : e.parameters.list()) {
      if (p->path != "lm_head.weight") continue;
      const Tensor g = p->gradient.stored().values();
      for (std::int64_t i = 61 * 64; i < g.count(); ++i) ASSERT_EQ(g.f32()[i], 0.0f);
    }
  });
}

// A CPU's chunks of 512 tokens would give two scales here.
TEST(Step, AQuantizedHeadHasOneScaleFor768Tokens) {
  EngineConfig config = small_engine("llama", "current");
  config.precision.head = scaling::HeadPrecision::recipe, config.shape.vocabulary = 64;
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  begin_steps(e).run(std::vector{random_batch(24, 32, 61, 3)}, {.measure = true}, [&] {
    const Readout seen = read_out(e);
    int found = 0;
    for (std::size_t i = 0; i < seen.health.size(); ++i) {
      const scaling::Slot& slot = e.precision.slots().slots()[i];
      if (slot.path != "lm_head" || slot.operand == scaling::Operand::weight) continue;
      ++found;
      EXPECT_EQ(seen.health[i].scale_min, seen.health[i].scale_max) << name(slot.operand);
      EXPECT_GT(seen.health[i].scale_min, 0) << name(slot.operand);
    }
    EXPECT_EQ(found, 2);
  });
}

TEST(Step, TheGradientIsTheSlopeOfTheLoss) {
  // Central difference along the gradient itself, in FP32: loss(w + h g) - loss(w - h g) = 2 h |g|^2 + O(h^3).
  for (const char* family : {"llama", "qwen2", "qwen3", "gpt2"}) {
    Engine e(small_engine(family, "fp32"), Device::cpu, machine::machine_target(Device::cpu));
    const data::Batch batch = random_batch(4, 32, 61, 3);
    std::vector<float> g;
    begin_steps(e).run(std::vector{batch}, {.learning_rate = 0}, [&] { g = nn::flat_values(e.stream, e.parameters.gradients()); });
    const std::vector<float> w = nn::flat_values(e.stream, e.parameters.values());
    double squares = 0;
    for (const float x : g) squares += double(x) * x;
    const double h = 1e-2 / std::sqrt(squares);
    const auto loss_at = [&](double step) {
      std::size_t i = 0;
      for (Parameter* p : e.parameters.list())
        for (std::int64_t j = 0; j < p->value.count(); ++j, ++i) p->value.values().f32()[j] = float(w[i] + step * g[i]);
      e.parameters.mark_changed();
      return evaluate_batch(e, batch).loss;
    };
    const double slope = (loss_at(h) - loss_at(-h)) / (2 * h);
    // Rounding of the two losses: about sqrt(tokens) u loss / (2 h); curvature: below 1% at this step length.
    EXPECT_NEAR(slope, squares, 0.01 * squares + 128 * 0x1p-24 * 4.2 / (2 * h)) << family;
  }
}

TEST(DryRun, ARunThatDoesNotFitIsRefusedWithRemedies) {
  EngineConfig config = small_engine("llama", "bf16");
  config.shape = models::model_size("llama-3-8b"), config.sequence = 8192;
  const DryRun dry = dry_run(config, {}, 64, 1);
  EXPECT_GT(dry.parameters, 8'000'000'000);
  const auto refusal = [&](std::size_t available) -> std::string {
    try {
      require_memory(dry, available, {.batch = 64, .accumulate = 1});
    } catch (const DeviceError& e) {
      return e.what();
    }
    return "";
  };
  const std::size_t total = dry.memory.total;
  EXPECT_EQ(refusal(total), "");
  EXPECT_NE(refusal(total - 1).find("set train.batch = 32 and train.accumulate = 2"), std::string::npos) << refusal(total - 1);
  EXPECT_NE(refusal(total - 1).find("recompute"), std::string::npos);
  // States need 16 to 18 bytes per parameter: with room for little more, only the smallest batch can fit; with less, none.
  const std::size_t little = std::size_t(dry.parameters) * 19, less = std::size_t(dry.parameters) * 15;
  EXPECT_NE(refusal(little).find("set train.batch = 1 and train.accumulate = 64"), std::string::npos) << refusal(little);
  EXPECT_NE(refusal(less).find("at any batch size: set optim.level"), std::string::npos) << refusal(less);
  EXPECT_EQ(refusal(less).find("train.batch"), std::string::npos) << refusal(less);

  EXPECT_EQ(dry.smaller_states,
            (std::vector<std::string>{"optim.level = \"O3\"", "recipe.weights = \"on_demand\"", "optim.offload = true on a GPU"}));
  config.optimizer->level = optim::Level::O3, config.precision.weights = scaling::WeightCodes::on_demand;
  EXPECT_EQ(dry_run(config, {}, 64, 1).smaller_states, std::vector<std::string>{"optim.offload = true on a GPU"})
      << "what the run has already is no remedy";
}

TEST_P(EveryRecipe, AStepThatWasStoppedBetweenMicroBatchesLeavesNoTrace) {
  static int questions;
  Engine undisturbed(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu)),
      e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner other = train_steps(undisturbed, 3, 2), runner = train_steps(e, 3, 2);
  const std::vector<data::Batch> batches{random_batch(2, 32, 61, 5), random_batch(2, 32, 61, 6)};
  const auto state_of = [](Engine& engine) {
    Capture capture(engine.stream);
    engine.visit_state(capture);
    const Snapshot s = capture.take();
    return std::vector<std::byte>(s.span().begin(), s.span().end());
  };
  questions = 0;
  EXPECT_FALSE(runner.run(batches, {.learning_rate = 1e-2, .stopped = [] { return ++questions == 2; }}));
  EXPECT_TRUE(state_of(e) == state_of(undisturbed));
  for (StepRunner* each : {&other, &runner}) EXPECT_TRUE(each->run(batches, {.learning_rate = 1e-2, .measure = true}));
  EXPECT_TRUE(state_of(e) == state_of(undisturbed));
}

}  // namespace
}  // namespace octet::train
