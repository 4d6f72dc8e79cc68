#include <gtest/gtest.h>

#include "octet/plan/dry_memory.hpp"
#include "octet/plan/time.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Layers that predict further tokens (model.mtp_depth) in plans, compared with dry runs.

namespace octet::plan {
namespace {

constexpr Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};

Software octet_program(const Layout& l) { return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit); }

Job job_of(std::int64_t sequence, std::int64_t sequences, std::int64_t gpus) {
  return {.sequence = sequence, .sequences = sequences, .gpus = gpus, .memory = 80e9, .machine = machine::machine_constants("h100")};
}

train::EngineConfig config_of(const char* size, std::int64_t depth, const char* recipe = "bf16") {
  train::EngineConfig c = train::testing::small_engine("llama", recipe);
  c.shape = models::model_size(size), c.shape.mtp_depth = depth;
  return c;
}

PlannedModel planned(const char* size, std::int64_t depth) { return planned_model(config_of(size, depth).shape); }

TEST(FurtherTokensInPlans, HaveTheParametersAndOperationsOfTheDryRun) {
  for (const char* size : {"deepseek-v3", "moonlight-16b-a3b"}) {
    std::vector<double> parameters, operations, planned_parameters, planned_operations;
    for (const std::int64_t depth : {0, 1, 2}) {
      train::EngineConfig config = config_of(size, depth);
      config.sequence = 4096;
      const train::DryRun dry = train::dry_run(config, gpu, 16, 1);
      const PlannedModel model = planned(size, depth);
      parameters.push_back(double(dry.parameters)), planned_parameters.push_back(model.parameters());
      operations.push_back(dry.step.gemm_flops), planned_operations.push_back(6 * 16 * 4096 * model.used_parameters());
      EXPECT_NEAR(planned_parameters.back() / parameters.back(), 1, 1e-3) << size << ", depth " << depth;
    }
    for (const std::size_t depth : {1u, 2u}) {  // rows of experts are padded to tiles of 128, in blocks and ahead of them
      const double more = parameters[depth] - parameters[depth - 1],
                   planned_more = planned_parameters[depth] - planned_parameters[depth - 1];
      EXPECT_NEAR(planned_more / more, 1, 1e-3) << size << ", depth " << depth;
      const double work = operations[depth] - operations[depth - 1],
                   planned_work = planned_operations[depth] - planned_operations[depth - 1];
      EXPECT_NEAR(planned_work / work, 1, 0.02) << size << ", depth " << depth;
    }
  }
  EXPECT_NEAR(planned("deepseek-v3", 1).parameters() - planned("deepseek-v3", 0).parameters(), 11.6e9, 0.1e9);
}

TEST(FurtherTokensInPlans, HaveTheMemoryOfTheDryRun) {
  train::EngineConfig config = config_of("deepseek-v3-tiny", 1);
  config.shape.layers = 6, config.shape.experts.first_dense = 0, config.sequence = 256;
  for (const bool tied : {false, true})
    for (const Layout& l :
         {Layout{}, Layout{.data = 2, .zero = 1}, Layout{.data = 2, .zero = 3}, Layout{.pipeline = 2},
          Layout{.pipeline = 2, .data = 2, .zero = 1, .recomputed = Recomputed::block}, Layout{.data = 2, .experts = 2}}) {
      config.shape.tied = tied;
      const Job job = job_of(256, 16, l.gpus());
      DryMemory source(config, {.recipe = "current"}, {.recipe = "bf16"}, gpu, job);
      const double exact = double(source.arena(l).total);
      const double parts = stage_memory(source.layer_memory(l), planned_model(config.shape), l, job).largest().total();
      EXPECT_NEAR(parts / exact, 1, 0.05) << to_text(l) << (tied ? " tied" : "");
    }
}

TEST(FurtherTokensInPlans, AddTheBytesOfFormulasThatDryRunsAdd) {
  for (const Layout& l :
       {Layout{.data = 8}, Layout{.data = 8, .zero = 1, .micro_batch = 2}, Layout{.data = 8, .zero = 1, .eight_bit = true}}) {
    const Job job = job_of(2048, 256, 8);
    const auto more = [&](MemorySource&& source) { return source.layer_memory(l).ahead.total(); };
    const double dry = more(DryMemory(config_of("moonlight-16b-a3b", 1), {.recipe = "current"}, {.recipe = "bf16"}, gpu, job));
    const double formula = more(FormulaMemory(planned("moonlight-16b-a3b", 1), job, octet_program));
    EXPECT_NEAR(formula / dry, 1, 0.1) << to_text(l);
  }
}

// The stage with the head computes an expert block, the product of two inputs and the head once more, and exchanges as much more.
TEST(FurtherTokensInPlans, TakeTimeAndBytesOnTheLastStage) {
  const PlannedModel without = planned("deepseek-v3", 0), with = planned("deepseek-v3", 1);
  const Job job = job_of(4096, 2048, 64);
  const Layout l{.pipeline = 8, .data = 8, .experts = 8, .zero = 1, .eight_bit = true};
  const Software s = octet_program(l);
  const StepTime a = step_time(without, l, job, s), b = step_time(with, l, job, s);
  EXPECT_NEAR(b.head, 2 * a.head, 1e-9 * a.head);
  EXPECT_NEAR(b.attention / a.attention, 62.0 / 61, 1e-9);
  EXPECT_GT(b.total(), 1.02 * a.total());
  EXPECT_LT(b.total(), 1.15 * a.total());  // other stages have up to 9 blocks in place of 8
  EXPECT_NEAR(model_flops_rate(b, with, job) * b.total() / (model_flops_rate(a, without, job) * a.total()), 1.04, 0.002);
  const std::int64_t last = layers_of_stages(without, l, job).back(), fewer = layers_of_stages(with, l, job).back();
  EXPECT_LT(fewer, last) << "the last stage has fewer blocks";
  const Volume sent = volume(with, l, job, s), less = volume(without, l, job, s);
  EXPECT_NEAR(sent.pipeline - less.pipeline, 4 * with.end_parameters(), 1) << "the embedding's gradient is on both ends";
}

}  // namespace
}  // namespace octet::plan
