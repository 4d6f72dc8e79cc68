#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Blocks with norms behind their branches, factors, windows, and clipped queries, keys and values, under what every block has:
// recomputation, dry runs, packed documents. What they compute is held to PyTorch in golden.test.cpp.

namespace octet::train {
namespace {

using namespace octet::train::testing;

EngineConfig engine_with(const std::string& family, const std::string& recipe) {
  EngineConfig c = small_engine(family, recipe);
  if (family == "granite") c.shape.multipliers = {.embedding = 3, .branch = 0.3, .logits_divisor = 4, .scores = 0.1};
  if (family == "gemma3_text") c.shape.window = {.tokens = 7, .global_step = 2, .rope_theta = 100};
  if (family == "olmoe") c.shape.experts = {.number = 4, .chosen = 2, .width = 32}, c.shape.hidden = 32, c.shape.clip_qkv = 0.8;
  return c;
}

class OtherBlocks : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, OtherBlocks, ::testing::Values("olmo2", "granite", "gemma3_text", "olmoe"));

TEST_P(OtherBlocks, HaveTheSameGradientsWhateverIsComputedAgain) {
  const auto gradients_of = [](const EngineConfig& config) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    std::vector<float> out;
    train_steps(e, 1).run(std::vector{random_batch(4, 32, 61, 9)}, {.learning_rate = 1e-3},
                          [&] { out = nn::flat_values(e.stream, e.parameters.gradients()); });
    return out;
  };
  for (const char* recipe : {"bf16", "current"}) {
    EngineConfig config = engine_with(GetParam(), recipe);
    const std::vector<float> wanted = gradients_of(config);
    for (const std::vector<std::string>& parts : {std::vector<std::string>{"norm", "activation"}, {"mlp"}, {"attention"}, {"block"}}) {
      config.model.recompute = nn::Recompute::named(parts);
      EXPECT_EQ(gradients_of(config), wanted) << recipe << ::testing::PrintToString(parts);
    }
  }
}

TEST_P(OtherBlocks, ADryRunNeedsTheMemoryOfARealRun) {
  for (const std::vector<std::string>& parts : {std::vector<std::string>{}, {"mlp"}, {"block"}}) {
    EngineConfig config = engine_with(GetParam(), "current");
    config.model.recompute = nn::Recompute::named(parts);
    const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    train_steps(e, 2, 2);
    evaluate_batch(e, random_batch(2, 32, 61, 1));
    EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << ::testing::PrintToString(parts);
  }
}

// Each document of a packed row alone in a sequence of its own. Sums over tokens are rounded in as many GEMMs as lie between the loss and
// the first weight.
TEST_P(OtherBlocks, ReadTheirOwnDocumentWithinTheirWindow) {
  constexpr std::int64_t length = 32;
  EngineConfig config = engine_with(GetParam(), "fp32");
  data::Batch packed = random_batch(1, length, 61, 3);
  packed.document_starts = ops::random_document_starts(length, length, 12, 5);
  std::vector<data::Batch> alone;
  for (std::int64_t t = 0; t < length; ++t) {
    const bool begins = packed.document_starts[std::size_t(t)] == t;
    if (begins && t > 0) packed.targets[std::size_t(t - 1)] = alone.back().targets.back() = -1;
    if (begins) alone.push_back({.rows = 1});
    ++alone.back().length;
    alone.back().inputs.push_back(packed.inputs[std::size_t(t)]), alone.back().targets.push_back(packed.targets[std::size_t(t)]);
  }
  ASSERT_GE(alone.size(), 2u);
  packed.document_mask = config.document_mask = true;
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  e.initialize(7);
  double sum = 0;
  std::int64_t counted = 0;
  for (const data::Batch& b : alone) {
    const Evaluation one = evaluate_batch(e, b);
    sum += one.loss * double(one.tokens), counted += one.tokens;
  }
  const Evaluation together = evaluate_batch(e, packed);
  EXPECT_EQ(together.tokens, counted);
  EXPECT_NEAR(together.loss, sum / double(counted), 16 * double(length) * 0x1p-24 * together.loss);
}

TEST(Window, ATokenDoesNotChangeTheLogitsBeyondWhatItsLayersReach) {
  EngineConfig config = engine_with("gemma3_text", "fp32");
  config.shape.window.global_step = 0;  // two layers of 7 tokens reach 12 tokens back
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  e.initialize(7);
  const data::Batch batch = random_batch(1, 32, 61, 3);
  const auto logits = [&](std::vector<std::int32_t> ids) {
    const Scope scope(e.stream);
    const Tensor tokens = e.stream.empty({32}, DType::i32), out = e.stream.empty({32, e.model->shape().padded_vocabulary()}, DType::f32);
    octet::upload(e.stream, ids.data(), tokens);
    e.model->logits(e.stream, {.tokens = tokens, .sequence = 32}, {}, 32, out);
    return std::vector<float>(out.f32(), out.f32() + out.count());
  };
  std::vector<std::int32_t> changed = batch.inputs;
  changed[3] = (changed[3] + 1) % 61;
  const std::vector<float> a = logits(batch.inputs), b = logits(changed);
  const std::size_t row = a.size() / 32;
  for (std::size_t t = 0; t < 32; ++t) {
    const bool same =
        std::equal(a.begin() + std::ptrdiff_t(t * row), a.begin() + std::ptrdiff_t((t + 1) * row), b.begin() + std::ptrdiff_t(t * row));
    EXPECT_EQ(same, t < 3 || t > 15) << t;
  }
}

}  // namespace
}  // namespace octet::train
