#include <gtest/gtest.h>

#include "octet/io/tensor_folder.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/ops/attention/documents.testing.hpp"
#include "octet/train/checkpoint/mesh_states.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/golden.testing.hpp"

// Multi-token prediction: layers behind the last block that predict further tokens.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;

models::ModelShape shape_of(const std::string& folder, std::int64_t depth) {
  models::ModelShape s = models::read_hugging_face_shape(folder);
  s.mtp_depth = depth, s.kept_layers -= depth;
  return s;
}

/// An engine with the golden file's model, weights and optimizer.
std::unique_ptr<Engine> engine_of(const Golden& golden) {
  const Scratch scratch;
  write_model(scratch, golden);
  EngineConfig c{.shape = shape_of(scratch.at("model"), golden.mtp_depth),
                 .model = {.mtp_loss = golden.mtp_factor},
                 .precision = {.recipe = "fp32"},
                 .optimizer =
                     optim::OptimizerConfig{
                         .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_grad_norm = 1.0},
                 .sequence = golden.length};
  auto e = std::make_unique<Engine>(c, Device::cpu, machine::machine_target(Device::cpu));
  load_weights(*e, scratch.at("model"));
  return e;
}

/// Gradients under the names of files.
io::TensorFolder saved_gradients(Engine& e, const std::string& folder) {
  std::vector<Stored> values;
  for (Parameter* p : e.parameters.list()) std::swap(p->value, values.emplace_back(p->gradient.stored()));
  const nn::RouterBiases biases = biases_of(e);  // without gradients
  for (const Parameter* p : biases.behind({})) std::fill_n(p->value.values().f32(), p->shape.count(), 0.0f);
  models::save_hugging_face(folder, e.model->shape(), biases.behind(e.parameters.list()));
  for (std::size_t i = 0; i < values.size(); ++i) e.parameters.list()[i]->value = values[i];
  return io::TensorFolder::open(folder);
}

// The bound of Golden.EveryFamily for four blocks of this shape.
TEST(MultiTokenPrediction, HasTheGradientsThatPytorchComputesAlsoOfSharedEmbeddingAndHead) {
  const Golden golden = read_golden("deepseek_v3_mtp");
  ASSERT_EQ(golden.mtp_depth, 2);
  const Scratch scratch;
  const auto e = engine_of(golden);
  StepRunner(*e).run(std::vector{batch_of(golden, e->model->shape().vocabulary)}, {}, [&] {
    const io::TensorFolder gradients = saved_gradients(*e, scratch.at("gradients"));
    EXPECT_EQ(gradients.names().size(), golden.gradients.size() + 2 * std::size_t(golden.mtp_depth)) << "files repeat embedding and head";
    for (const GoldenGradient& g : golden.gradients) expect_near(to_f32(gradients.tensor(g.name)), g, 4e-5);
  });
}

// As Golden.EveryFamily.TrainsTwentyStepsAsPytorchDoesInDoublePrecision.
TEST(MultiTokenPrediction, TrainsTwentyStepsAsPytorchDoesInDoublePrecision) {
  const Golden golden = read_golden("deepseek_v3_mtp");
  ASSERT_EQ(golden.mtp_losses.size(), 20u);
  const auto e = engine_of(golden);
  StepRunner runner(*e);
  const std::vector batches{batch_of(golden, e->model->shape().vocabulary)};
  for (std::size_t step = 0; step < golden.losses.size(); ++step) {
    Readout shown;
    runner.run(batches, {.learning_rate = 1e-3}, [&] { shown = read_out(*e); });
    EXPECT_NEAR(double(shown.loss), golden.losses[step], 1e-6 * std::max(1.0, golden.losses[step])) << "step " << step + 1;
    EXPECT_NEAR(shown.ahead_loss, golden.mtp_losses[step], 1e-6 * std::max(1.0, golden.mtp_losses[step])) << "step " << step + 1;
  }
}

EngineConfig config_of(const std::string& recipe, std::int64_t depth, std::int64_t first_dense = 1) {
  EngineConfig c = small_engine("deepseek_v3", recipe);
  c.shape.width = 128, c.shape.layers = 2, c.shape.tied = false, c.shape.latent = small_latent(c.shape);
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .shared = 1, .score = ops::Routing::Score::sigmoid, .normalize = true};
  c.shape.experts.biased = true, c.shape.experts.first_dense = first_dense;
  c.shape.experts.balance = {.over = nn::Balance::Over::layer, .loss = 0.01, .z_loss = 1e-3, .bias_rate = 1e-3};
  c.shape.mtp_depth = depth;
  return c;
}

struct Result {
  Readout shown;
  std::vector<float> gradients;
};
Result step(const EngineConfig& config, const std::vector<data::Batch>& batches) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  Result r;
  begin_steps(e).run(batches, {.learning_rate = 1e-3}, [&] { r = {read_out(e), e.flat_gradients()}; });
  return r;
}

// A document alone in a row, and packed with others: targets ahead never cross its end. Dense blocks, since losses of routers are over all
// tokens of a micro-batch.
TEST(MultiTokenPrediction, OfPackedDocumentsIsThatOfEachAlone) {
  EngineConfig config = config_of("fp32", 2, 9);
  config.shape.experts.number = 0;
  data::Batch packed = random_batch(3, 32, 61, 3);
  packed.document_mask = true, packed.document_starts = ops::random_document_starts(96, 32, 6, 3);
  std::vector<data::Batch> alone;
  for (std::int64_t t = 0; t < 96; ++t) {
    const auto at = std::size_t(t);
    if ((t + 1) % 32 != 0 && packed.document_starts[at + 1] == (t + 1) % 32) packed.targets[at] = -1;
    if (packed.document_starts[at] == t % 32) alone.push_back({.rows = 1, .length = 0});
    ++alone.back().length;
    alone.back().inputs.push_back(packed.inputs[at]), alone.back().targets.push_back(packed.targets[at]);
  }
  ASSERT_GT(alone.size(), 10u);
  const Result each = step(config, alone);
  config.document_mask = true;
  const Result together = step(config, {packed});
  EXPECT_NEAR(together.shown.ahead_loss, each.shown.ahead_loss, 1e-5 * each.shown.ahead_loss);
  EXPECT_LT(distance(each.gradients, together.gradients), 1e-4);
  EXPECT_TRUE(std::isfinite(each.shown.ahead_loss) && each.shown.ahead_loss > 1);
}

// A token that is no target, and that no place with a target reads, changes neither loss nor gradient.
TEST(MultiTokenPrediction, TheLastPlacesOfARowCountNowhere) {
  EngineConfig config = config_of("fp32", 2, 9);
  config.shape.experts.number = 0;
  data::Batch b = random_batch(2, 32, 61, 5);
  const Result first = step(config, {b});
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  begin_steps(e).run(std::vector{b}, {.learning_rate = 1e-3}, [&] {
    EXPECT_EQ(read<std::int64_t>(e.stream, e.loss_sums().ahead_counted), 2 * (31 + 30));
    EXPECT_EQ(read<std::int64_t>(e.stream, e.loss_sums().counted), 64);
  });
  for (const std::size_t last : {31u, 63u}) b.targets[last] = -1;
  const Result masked = step(config, {b});
  EXPECT_GT(std::abs(masked.shown.ahead_loss - first.shown.ahead_loss), 1e-4) << "the last target is one of places before it";
}

// Shared parts have gradients of both uses: those of the model without further tokens, and mtp_loss times another.
TEST(MultiTokenPrediction, AddsItsFactorTimesItsGradientToThatOfTheModel) {
  EngineConfig config = config_of("fp32", 1);
  const std::vector batches{random_batch(2, 32, 61, 5)};
  const auto gradient = [&](double factor) {
    config.model.mtp_loss = factor;
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    std::map<std::string, std::vector<float>> out;
    begin_steps(e).run(batches, {.learning_rate = 1e-3}, [&] {
      for (const Parameter* p : e.parameters.list()) out[p->path] = nn::flat_values(e.stream, std::vector{p->gradient.stored()});
    });
    return out;
  };
  auto none = gradient(1e-30), half = gradient(0.5), one = gradient(1);
  for (const char* path : {"embedding.weight", "lm_head.weight", "norm.weight", "layers.1.attn.out.weight"}) {
    std::vector<float> expected = none[path];
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += 2 * (half[path][i] - none[path][i]);
    EXPECT_GT(distance(none[path], one[path]), 1e-2) << path;
    EXPECT_LT(distance(one[path], expected), 1e-4) << path;
  }
}

// Along its gradient, the loss of all tokens changes by the gradient's norm. Losses are sums in FP64 of FP32 values: at a step of 1e-2
// their error of about 1e-6 is 1e-4 of the quotient, and the third derivative adds the square of the step.
TEST(MultiTokenPrediction, GradientsAreQuotientsOfDifferencesOfTheLoss) {
  EngineConfig config = config_of("fp32", 2, 9);
  config.shape.experts.number = 0;
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = begin_steps(e);
  const std::vector batches{random_batch(2, 32, 61, 5)};
  std::vector<std::vector<float>> gradients;
  const auto loss = [&] {
    double out = 0;
    runner.run(batches, {}, [&] {
      const nn::LossSums sums = e.loss_sums();
      out = (read<double>(e.stream, sums.sum) + config.model.mtp_loss / 2 * read<double>(e.stream, sums.ahead_sum)) / 64;
      if (!gradients.empty()) return;
      for (const Parameter* p : e.parameters.list()) gradients.push_back(nn::flat_values(e.stream, std::vector{p->gradient.stored()}));
    });
    return out;
  };
  loss();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& p = *e.parameters.list()[i];
    double squares = 0;
    for (const float g : gradients[i]) squares += double(g) * double(g);
    const double norm = std::sqrt(squares), step = 1e-2;
    const std::vector<float> at = nn::flat_values(e.stream, std::vector{p.value});
    const auto moved = [&](double by) {
      for (std::size_t j = 0; j < at.size(); ++j) p.value.values().f32()[j] = float(double(at[j]) + by / norm * double(gradients[i][j]));
      ++p.version;
      return loss();
    };
    const double up = moved(step), down = moved(-step);
    moved(0);
    EXPECT_NEAR((up - down) / (2 * step), norm, 1e-3 * norm + 1e-4) << p.path;
  }
}

TEST(MultiTokenPrediction, WithoutDepthNothingChanges) {
  EngineConfig config = config_of("bf16", 0);
  const std::vector batches{random_batch(2, 32, 61, 5)};
  const Result first = step(config, batches);
  config.model.mtp_loss = 0.7;
  EXPECT_EQ(step(config, batches).gradients, first.gradients);
  EXPECT_TRUE(std::isnan(first.shown.ahead_loss));
}

class FurtherTokens : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(MultiTokenPrediction, FurtherTokens,
                         ::testing::Values("bf16", "fp16", "current", "delayed", "rowwise", "block128", "mxfp8", "global"));

TEST_P(FurtherTokens, QuantizesItsLayersAndLearnsFurtherTokens) {
  EngineConfig config = config_of(GetParam(), 1);
  config.optimizer->level = optim::Level::O2;
  const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
  const bool codes = !config.precision.recipe.ends_with("16");
  for (const char* path : {"layers.2.eh_proj", "layers.2.attn.kv_b", "layers.2.mlp.experts.down"}) {
    const auto row = std::ranges::find(dry.plan, path, &scaling::PlanRow::path);
    ASSERT_NE(row, dry.plan.end()) << path;
    EXPECT_EQ(row->eight_bits, codes) << path << ": " << row->why;
  }
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = begin_steps(e);
  const std::vector batches{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)};
  std::vector<double> losses;
  for (int s = 0; s < 8; ++s)
    runner.run(batches, {.learning_rate = 1e-2, .measure = s == 1}, [&] { losses.push_back(read_out(e).ahead_loss); });
  EXPECT_LT(losses.back(), losses.front() - 0.05);
  evaluate_batch(e, batches[0]);
  EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category);
}

TEST(MultiTokenPrediction, RecomputedPartsHaveTheSameGradientsAndTheMemoryOfTheDryRun) {
  for (const char* recipe : {"bf16", "block128"}) {
    std::vector<float> kept;
    for (const std::vector<std::string>& parts : std::vector<std::vector<std::string>>{{}, {"norm"}, {"activation"}, {"mlp"}, {"block"}}) {
      EngineConfig config = config_of(recipe, 2);
      config.model.recompute = nn::Recompute::named(parts);
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
      std::vector<float> gradients;
      StepRunner runner = begin_steps(e);
      runner.run(std::vector{random_batch(2, 32, 61, 5)}, {.learning_rate = 1e-3, .measure = true},
                 [&] { gradients = e.flat_gradients(); });
      if (kept.empty()) kept = gradients;
      EXPECT_EQ(gradients, kept) << recipe << ::testing::PrintToString(parts);
      evaluate_batch(e, random_batch(2, 32, 61, 5));
      const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 1);
      EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category) << recipe << ::testing::PrintToString(parts);
    }
  }
}

// Steps of four micro-batches on all groups of ranks.
MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh) {
  return steps_on_mesh(config, mesh, 2, 1e-2, [&](int step, int group) {
    std::vector<data::Batch> own;
    for (int i = group; i < 4; i += int(mesh.data)) own.push_back(random_batch(1, 32, 61, 300 + std::uint64_t(4 * step + i)));
    return own;
  });
}

TEST(MultiTokenPrediction, OnMeshesHasTheGradientsAndLossesOfOneRank) {
  EngineConfig config = config_of("fp32", 2);
  const auto expect_near = [&](const Mesh& mesh, const MeshSteps& one) {
    const MeshSteps many = steps_on(config, mesh);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text();
  };
  const MeshSteps one = steps_on(config, {});
  for (std::int64_t zero = 0; zero <= 3; ++zero) expect_near({.data = 2, .zero = zero}, one);
  for (const std::int64_t zero : {0, 3}) expect_near({.data = 2, .zero = zero, .expert = 2}, one);
  expect_near({.tensor = 2}, one);
  expect_near({.tensor = 2, .data = 2, .zero = 2}, one);
  expect_near({.pipeline = 2}, one);
  expect_near({.tensor = 2, .data = 2, .pipeline = 2, .zero = 1}, one);
  // Where all forwards come first, uses of one matrix in forward and backward belong to different micro-batches.
  config.shape.tied = true, config.ranks.schedule = parallel::Schedule::gpipe;
  expect_near({.data = 2, .pipeline = 2, .zero = 1}, steps_on(config, {}));
  config.shape.tied = false, config.shape.layers = 4, config.ranks.schedule = parallel::Schedule::dualpipe_v;
  const MeshSteps folded = steps_on(config, {});
  expect_near({.tensor = 2, .pipeline = 2}, folded);
  config.shape.layers = 2, config.ranks.schedule = parallel::Schedule::one_f_one_b;
  config.shape.experts.balance.loss = 0;  // is over whole sequences
  expect_near({.context = 2}, steps_on(config, {}));
}

TEST(MultiTokenPrediction, OnStagesHasTheBitsOfOneRankWhenProductsAreDeferred) {
  for (const char* recipe : {"bf16", "block128"}) {
    EngineConfig config = config_of(recipe, 1);
    const MeshSteps one = steps_on(config, {});
    for (const parallel::Schedule schedule : {parallel::Schedule::one_f_one_b, parallel::Schedule::zero_bubble}) {
      config.ranks.schedule = schedule;
      const MeshSteps two = steps_on(config, {.pipeline = 2});
      EXPECT_EQ(two.losses, one.losses) << recipe;
      EXPECT_LT(distance(one.gradients, two.gradients), 1e-6) << recipe << ": the embedding's parts are added in another order";
    }
  }
}

TEST(MultiTokenPrediction, StateIsTheSameOnAllMeshes) {
  const EngineConfig config = config_of("current", 1);
  const auto batches = [](int group) { return std::vector{random_batch(1, 32, 61, 7 + std::uint64_t(group))}; };
  const std::vector<Mesh> all{
      {}, {.data = 2, .zero = 3}, {.pipeline = 2}, {.tensor = 2, .pipeline = 2}, {.data = 2, .zero = 1, .expert = 2}};
  for (const Mesh& mesh : {all[0], all[1], all[3]}) expect_one_state(config, mesh, all, batches);
}

// Where B is 0, the model is that without adapters, and the gradient of B is s dW A^T.
TEST(MultiTokenPrediction, TrainsAdaptersThroughItsFrozenLayers) {
  EngineConfig whole = config_of("fp32", 1), adapted = whole;
  adapted.adapters.rank = 4;
  const std::vector batches{random_batch(2, 32, 61, 5)};
  const auto gradients = [&](const EngineConfig& config) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    std::map<std::string, std::vector<float>> out;
    begin_steps(e).run(batches, {.learning_rate = 0}, [&] {
      for (const Parameter* p : e.parameters.list()) {
        out[p->path] = nn::flat_values(e.stream, std::vector{p->gradient.stored()});
        if (p->path.ends_with("lora_a")) out[p->path] = nn::flat_values(e.stream, std::vector{p->value});
      }
    });
    return out;
  };
  auto of_weights = gradients(whole), of_adapters = gradients(adapted);
  for (const auto& [path, values] : of_adapters) EXPECT_FALSE(path.starts_with("layers.2.")) << path;
  const std::vector<float>&dw = of_weights.at("layers.1.attn.out.weight"), &a = of_adapters.at("layers.1.attn.out.lora_a"),
        &db = of_adapters.at("layers.1.attn.out.lora_b");
  const std::size_t rank = 4, out = 128, in = dw.size() / out;
  ASSERT_EQ(db.size(), out * rank);
  std::vector<float> expected(db.size(), 0.0f);
  for (std::size_t i = 0; i < out; ++i)
    for (std::size_t r = 0; r < rank; ++r)
      for (std::size_t k = 0; k < in; ++k) expected[i * rank + r] += float(adapted.adapters.factor()) * dw[i * in + k] * a[r * in + k];
  EXPECT_LT(distance(expected, db), 1e-5);
}

TEST(MultiTokenPrediction, WithAdaptersOnMeshesHasTheGradientsAndLossesOfOneRank) {
  EngineConfig config = config_of("fp32", 2);
  config.adapters.rank = 4;
  const MeshSteps one = steps_on(config, {});
  for (const Mesh& mesh : {Mesh{.data = 2, .zero = 3}, {.tensor = 2}, {.tensor = 2, .pipeline = 2}, {.data = 2, .expert = 2}}) {
    const MeshSteps many = steps_on(config, mesh);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text();
  }
}

TEST(MultiTokenPrediction, WhatIsNotBuiltIsRefusedWithItsReason) {
  const auto refusal = [](const EngineConfig& c, const Mesh& mesh) -> std::string {
    try {
      steps_on(c, mesh);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EngineConfig config = config_of("bf16", 1);
  config.preference.beta = 0.1, config.document_mask = true;
  EXPECT_TRUE(has(refusal(config, {}), "from pairs of answers (dpo.beta)"));
  EngineConfig llama = small_engine("llama", "bf16");
  llama.shape.mtp_depth = 1;
  EXPECT_TRUE(has(refusal(llama, {}), "models of the family llama predict no further tokens"));
}

}  // namespace
}  // namespace octet::train
