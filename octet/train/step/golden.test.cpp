#include <gtest/gtest.h>

#include <cmath>

#include "octet/io/tensor_folder.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/golden.testing.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/scratch.hpp"

// Loss and every gradient of a whole model against PyTorch's: tests/golden/*.txt, which tests/peers/golden.py made. The model comes in as
// a Hugging Face folder and its gradients go out under the same names, so the weight maps are held to PyTorch's meaning as well.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;

/// How far two FP32 computations of one gradient may lie apart, as a share of it. A value passes through sums of these lengths on its
/// way forward, and through as many on its way back; factors of rounding multiply along the way, so the lengths add up to the n of
/// gamma_n (Higham 2002, lemma 3.3), and each of the two computations may be that far from the exact one. gamma_n is a worst case,
/// about sqrt(n) times what roundings of random sign come to; this margin has to cover what cancels within a sum.
double tolerance(const models::ModelShape& s, const Golden& golden) {
  const std::int64_t attention = s.width + s.head_dim + golden.length + s.heads * s.head_dim;  // queries and keys, scores, values, output
  const std::int64_t mlp = s.width + s.hidden, norms = 2 * s.width;
  const std::int64_t forward = s.layers * (attention + mlp + norms) + s.width + s.width + s.vocabulary;  // last norm, head, softmax
  const std::int64_t weights = golden.rows * golden.length;                                              // the sum over tokens
  return 2 * octet::testing::dot_bound(double(2 * forward + weights), octet::testing::unit_f32, 1);
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Golden, EveryFamily,
                         ::testing::Values("llama", "smollm2", "qwen2", "qwen3", "gpt2", "qwen3_moe", "olmoe", "olmoe_clip", "mixtral",
                                           "deepseek_v2", "deepseek_v3", "mistral", "smollm3", "granite", "olmo2", "phi3", "gemma3",
                                           "llama_bias", "qwen3_bias", "olmoe_bias"));

TEST_P(EveryFamily, HasTheLossAndTheGradientsThatPytorchComputes) {
  const Golden golden = read_golden(GetParam());
  ASSERT_GE(golden.gradients.size(), 15u) << "tests/golden/" << GetParam() << ".txt";
  const Scratch scratch;
  write_model(scratch, golden);
  const models::ModelShape shape = models::read_hugging_face_shape(scratch.at("model"));
  Engine e({.shape = shape, .precision = {.recipe = "fp32"}, .optimizer = optim::OptimizerConfig{}, .sequence = golden.length}, Device::cpu,
           machine::machine_target(Device::cpu));
  load_weights(e, scratch.at("model"));
  const double share = tolerance(shape, golden);
  std::vector<Stored> values;
  StepRunner(e).run(std::vector{batch_of(golden, shape.vocabulary)}, {}, [&] {
    EXPECT_NEAR(*e.mean_loss().f32(), golden.loss, share * golden.loss);
    for (Parameter* p : e.parameters.list()) std::swap(p->value, values.emplace_back(p->gradient.stored()));
    const nn::RouterBiases biases = biases_of(e);  // without gradients
    for (const Parameter* p : biases.behind({})) std::fill_n(p->value.values().f32(), p->shape.count(), 0.0f);
    models::save_hugging_face(scratch.at("gradients"), shape, biases.behind(e.parameters.list()));  // under the file's names
    for (std::size_t i = 0; i < values.size(); ++i) e.parameters.list()[i]->value = values[i];
  });
  const io::TensorFolder gradients = io::TensorFolder::open(scratch.at("gradients"));
  EXPECT_EQ(gradients.names().size(), golden.gradients.size());
  for (const GoldenGradient& g : golden.gradients) {
    const io::TensorView tensor = gradients.tensor(g.name);
    ASSERT_EQ(std::vector(tensor.shape.begin(), tensor.shape.end()), g.shape) << g.name;
    expect_near(to_f32(tensor), g, share);
  }
}

/// An engine with the golden file's model and weights, by `recipe`, and golden.py's optimizer.
std::unique_ptr<Engine> engine_of(const Golden& golden) {
  const Scratch scratch;
  write_model(scratch, golden);
  const models::ModelShape shape = models::read_hugging_face_shape(scratch.at("model"));
  const optim::OptimizerConfig optimizer{
      .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_grad_norm = 1.0};
  auto e = std::make_unique<Engine>(
      EngineConfig{.shape = shape, .precision = {.recipe = "fp32"}, .optimizer = optimizer, .sequence = golden.length}, Device::cpu,
      machine::machine_target(Device::cpu));
  load_weights(*e, scratch.at("model"));
  return e;
}

TEST_P(EveryFamily, HasTheLogitsThatPytorchComputesInDoublePrecision) {
  const Golden golden = read_golden(GetParam());
  ASSERT_GT(golden.logits.size(), 20u);
  const auto e = engine_of(golden);
  const models::ModelShape& shape = e->model->shape();
  const Scope scope(e->stream);
  const data::Batch batch = batch_of(golden, shape.vocabulary);
  const std::int64_t tokens = batch.rows * batch.length, padded = shape.padded_vocabulary();
  const Tensor ids = e->stream.empty({tokens}, DType::i32), logits = e->stream.empty({tokens, padded}, DType::f32);
  upload(e->stream, batch.inputs.data(), ids);
  e->model->logits(e->stream, {.tokens = ids, .sequence = batch.length}, {}, batch.length, logits);
  for (const auto& [i, value] : golden.logits) {
    const std::int64_t at = std::int64_t(i) / shape.vocabulary * padded + std::int64_t(i) % shape.vocabulary;
    EXPECT_NEAR(logits.f32()[at], value, 1e-5 * golden.largest_logit) << i;
  }
}

/// The loss is a float: below 8 its rounding alone is up to 2^-22 = 2.4e-7. The rest of 1e-6 is for the errors of weights. AdamW divides a
/// gradient by the root of its second moment, so an update has the relative error of its gradient, whatever its size. All updates together
/// are at most 20 x 1e-3 per weight, and gradients are exact to about 1e-6 of their norm. A factor of embedded tokens multiplies what
/// errors of their weights do to the loss.
TEST_P(EveryFamily, TrainsTwentyStepsAsPytorchDoesInDoublePrecision) {
  const Golden golden = read_golden(GetParam());
  ASSERT_EQ(golden.losses.size(), 20u);
  const auto e = engine_of(golden);
  StepRunner runner(*e);
  const std::vector batches{batch_of(golden, e->model->shape().vocabulary)};
  const double bound = 1e-6 * std::max(1.0, e->model->shape().multipliers.embedding);
  for (std::size_t step = 0; step < golden.losses.size(); ++step) {
    double loss = 0;
    runner.run(batches, {.learning_rate = 1e-3}, [&] { loss = double(*e->mean_loss().f32()); });
    EXPECT_NEAR(loss, golden.losses[step], bound * std::max(1.0, golden.losses[step])) << "step " << step + 1;
  }
}

}  // namespace
}  // namespace octet::train
