#include <gtest/gtest.h>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/meshes.testing.hpp"

// Steps whose forward products read BF16 values, and backward's the codes of a recipe.

namespace octet::train {
namespace {

using namespace octet::train::testing;

EngineConfig values_in_forward(EngineConfig config) {
  config.precision.forward_values = true;
  return config;
}

EngineConfig with_experts(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = small_engine("qwen3_moe", recipe, recompute);
  c.shape.width = 128, c.shape.head_dim = 32;
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true, .balance = {.loss = 0.01}};
  return c;
}
EngineConfig with_latents(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = with_experts(recipe, recompute);
  c.shape.family = "deepseek_v3", c.shape.latent = small_latent(c.shape);
  c.shape.experts.score = ops::Routing::Score::sigmoid, c.shape.experts.shared = 1, c.shape.experts.first_dense = 1;
  return c;
}
EngineConfig with_gelu(const std::string& recipe, const nn::Recompute& recompute = {}) { return small_engine("gpt2", recipe, recompute); }
EngineConfig with_swiglu(const std::string& recipe, const nn::Recompute& recompute = {}) {
  return small_engine("llama", recipe, recompute);
}
EngineConfig without_first_norms(const std::string& recipe, const nn::Recompute& recompute = {}) {
  return small_engine("olmo2", recipe, recompute);
}

constexpr auto every_model = {with_swiglu, with_gelu, with_experts, with_latents, without_first_norms};
const std::vector<std::string> some_parts[] = {{}, {"norm"}, {"activation"}, {"mlp", "attention"}, {"block"}};

class ForwardValues : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Step, ForwardValues, ::testing::Values("delayed", "current", "rowwise", "block128", "mxfp8", "global"),
                         [](const auto& info) { return std::string(info.param); });

struct Found {
  double loss = 0, evaluated = 0;
  std::vector<float> gradients, maxima;
};

// Of the second step, and an evaluation of the first weights.
Found found_in(const EngineConfig& config) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  Found out;
  StepRunner runner = begin_steps(e);
  out.evaluated = evaluate_batch(e, random_batch(2, 32, 61, 1)).loss;
  for (int step = 0; step < 2; ++step)
    runner.run(std::vector{random_batch(2, 32, 61, 3), random_batch(2, 32, 61, 4)}, {.learning_rate = 1e-3, .measure = step == 1}, [&] {
      if (step == 0) out.loss = read_out(e).loss;
      out.gradients = nn::flat_values(e.stream, e.parameters.gradients());
      const Tensor seen = e.precision.slots().amax();
      out.maxima.assign(seen.f32(), seen.f32() + seen.count());
    });
  return out;
}

TEST_P(ForwardValues, GiveTheLossOfBf16AndOtherGradients) {
  for (const auto make : every_model) {
    const Found values = found_in(values_in_forward(make(GetParam(), {}))), bf16 = found_in(make("bf16", {}));
    EXPECT_EQ(values.loss, bf16.loss) << make("bf16", {}).shape.family;
    EXPECT_EQ(values.evaluated, bf16.evaluated) << make("bf16", {}).shape.family;
    EXPECT_NE(values.gradients, bf16.gradients) << make("bf16", {}).shape.family;
  }
}

TEST_P(ForwardValues, GiveTheSameBitsWhereActivationsAreRecomputedAndCodesOfWeightsAreMadeForEachGemm) {
  for (const auto make : every_model) {
    const Found whole = found_in(values_in_forward(make(GetParam(), {})));
    for (const auto& parts : some_parts) {
      EngineConfig config = values_in_forward(make(GetParam(), nn::Recompute::named(parts)));
      config.precision.weights = scaling::WeightCodes::on_demand;
      const Found found = found_in(config);
      const std::string what = config.shape.family + ::testing::PrintToString(parts);
      EXPECT_EQ(found.loss, whole.loss) << what;
      EXPECT_EQ(found.gradients, whole.gradients) << what;
      EXPECT_EQ(found.maxima, whole.maxima) << what;
    }
  }
}

TEST_P(ForwardValues, TakeTheMemoryAndWorkOfADryRun) {
  for (const auto make : every_model)
    for (const auto& parts : some_parts) {
      EngineConfig config = values_in_forward(make(GetParam(), nn::Recompute::named(parts)));
      config.precision.weights = parts.empty() ? scaling::WeightCodes::cached : scaling::WeightCodes::on_demand;
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      StepRunner runner = begin_steps(e);
      const std::vector batches(2, random_batch(2, 32, 61, 1));
      const Work before = e.stream.work();
      runner.run(batches, {.learning_rate = 1e-2});
      const Work real = e.stream.work() - before;
      runner.run(batches, {.learning_rate = 1e-2, .measure = true});
      evaluate_batch(e, batches[0]);
      const std::string what = config.shape.family + ::testing::PrintToString(parts);
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << what;
      EXPECT_EQ(dry.step.flops, real.flops) << what;
      EXPECT_EQ(dry.step.bytes, real.bytes) << what;
    }
}

// Operands of backward alone are saved: one byte per value.
TEST_P(ForwardValues, SaveTheActivationsOfTheRecipe) {
  for (const bool saved : {false, true}) {
    EngineConfig config = small_engine("llama", GetParam());
    config.shape.layers = 16;
    if (saved) config.precision.activations = scaling::SavedActivations::fp8;
    const auto saved_by = [](const EngineConfig& c) { return dry_run(c, {.device = Device::cuda, .multiprocessors = 132}, 8, 1).saved; };
    EXPECT_EQ(saved_by(values_in_forward(config)), saved_by(config));
    EXPECT_EQ(saved_by(config).size(), 16u);
  }
}

// Ranks gather values of what forward reads: of rows, and of divided weights.
TEST_P(ForwardValues, GiveRanksTheLossOfBf16) {
  const double bound = std::string(GetParam()) == "global" ? 1 : 0.2;  // one scale flushes small gradients
  const auto batches = [](const Mesh& mesh) {
    return [data = mesh.data](int step, int group) {
      std::vector<data::Batch> out;
      for (int i = group; i < 4; i += int(data)) out.push_back(random_batch(1, 32, 61, 900 + std::uint64_t(4 * step + i)));
      return out;
    };
  };
  for (const Mesh& mesh :
       {Mesh{.tensor = 2}, Mesh{.data = 2, .zero = 1}, Mesh{.data = 2, .zero = 3}, Mesh{.tensor = 2, .data = 2, .zero = 3}}) {
    EngineConfig config = small_engine("llama", GetParam()), plain = small_engine("llama", "bf16");
    config.shape.hidden = plain.shape.hidden = 128;
    const MeshSteps values = steps_on_mesh(values_in_forward(config), mesh, 2, 1e-2, batches(mesh)),
                    bf16 = steps_on_mesh(plain, mesh, 2, 1e-2, batches(mesh));
    EXPECT_EQ(values.losses[0], bf16.losses[0]) << mesh.text();
    EXPECT_LT(distance(bf16.gradients, values.gradients), bound) << mesh.text();
  }
  const Mesh mesh{.data = 2, .expert = 2};
  const MeshSteps values = steps_on_mesh(values_in_forward(with_experts(GetParam())), mesh, 2, 1e-2, batches(mesh)),
                  bf16 = steps_on_mesh(with_experts("bf16"), mesh, 2, 1e-2, batches(mesh));
  EXPECT_EQ(values.losses[0], bf16.losses[0]);
  EXPECT_LT(distance(bf16.gradients, values.gradients), bound);
}

}  // namespace
}  // namespace octet::train
