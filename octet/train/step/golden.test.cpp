#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/scratch.hpp"

// Loss and every gradient of a whole model against PyTorch's: tests/golden/*.txt, which tests/peers/golden.py made. The model comes in as
// a Hugging Face folder and its gradients go out under the same names, so the weight maps are held to PyTorch's meaning as well.

namespace octet::train {
namespace {

using octet::testing::Scratch;

struct GoldenGradient {
  std::string name;
  std::vector<std::int64_t> shape;
  double norm = 0, sum = 0, largest = 0;
  std::vector<std::pair<std::size_t, double>> samples;  // flat index, value
};

struct Golden {
  std::string config;  // config.json
  std::int64_t rows = 0, length = 0;
  double loss = 0;
  std::vector<GoldenGradient> gradients;
  double largest_logit = 0;
  std::vector<std::pair<std::size_t, double>> logits;  // flat index, value
  std::vector<double> losses;                          // of a short training
};

std::pair<std::size_t, double> sample_of(const std::string& text) {
  return {std::stoull(text), std::stod(text.substr(text.find(':') + 1))};
}

GoldenGradient gradient_of(const std::string& name, std::istringstream& line) {
  GoldenGradient g{.name = name};
  std::string shape, sample;
  line >> shape >> g.norm >> g.sum >> g.largest;
  std::istringstream dimensions(shape);
  for (std::string d; std::getline(dimensions, d, 'x');) g.shape.push_back(std::stoll(d));
  while (line >> sample) g.samples.push_back(sample_of(sample));
  return g;
}

Golden read_golden(const std::string& family) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/" + family + ".txt");
  Golden golden;
  std::string sample;
  double loss = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "config") std::getline(line, golden.config);
    else if (key == "tokens") line >> golden.rows >> golden.length;
    else if (key == "loss") line >> golden.loss;
    else if (key == "logits")
      for (line >> golden.largest_logit; line >> sample;) golden.logits.push_back(sample_of(sample));
    else if (key == "losses")
      while (line >> loss) golden.losses.push_back(loss);
    else if (key != "#") golden.gradients.push_back(gradient_of(key, line));
  }
  return golden;
}

/// golden.py's draw(): the i-th word that belongs to a name.
std::uint32_t draw(std::string_view name, std::size_t i) {
  std::uint32_t h = 0x811C9DC5;
  for (const char byte : name) h = (h ^ std::uint8_t(byte)) * 0x01000193;
  h += std::uint32_t(i) * 0x9E3779B9;
  h = (h ^ h >> 16) * 0x85EBCA6B;
  h = (h ^ h >> 13) * 0xC2B2AE35;
  return h ^ h >> 16;
}

/// golden.py's start(): the same bits.
std::vector<float> start(const GoldenGradient& g) {
  const bool norm = g.shape.size() == 1 && g.name.ends_with(".weight");
  std::vector<float> out(std::size_t(std::accumulate(g.shape.begin(), g.shape.end(), std::int64_t(1), std::multiplies<>())));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = float(draw(g.name, i) >> 16) * 0x1p-17f - 0.25f + (norm ? 1.0f : 0.0f);
  return out;
}

data::Batch batch_of(const Golden& golden, std::int64_t vocabulary) {
  data::Batch b;
  b.rows = golden.rows, b.length = golden.length;
  const auto token = [&](std::int64_t i) { return std::int32_t(draw("tokens", std::size_t(i)) % std::uint32_t(vocabulary)); };
  for (std::int64_t r = 0; r < b.rows; ++r)
    for (std::int64_t p = 0; p < b.length; ++p) {
      b.inputs.push_back(token(r * (b.length + 1) + p));
      b.targets.push_back(token(r * (b.length + 1) + p + 1));
    }
  return b;
}

void write_model(const Scratch& scratch, const Golden& golden) {
  scratch.write("model/config.json", golden.config);
  std::vector<io::TensorSpec> specs;
  for (const GoldenGradient& g : golden.gradients) specs.push_back({g.name, io::StoredDType::f32, g.shape});
  io::TensorFolderWriter writer(scratch.at("model"), specs);
  for (const GoldenGradient& g : golden.gradients) writer.append(g.name, io::from_f32(start(g), io::StoredDType::f32));
  writer.commit();
}

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

/// Within `share` of the tensor's norm, which bounds norm and, by Cauchy and Schwarz, the sum; entries within that share of the largest.
void expect_near(const std::vector<float>& ours, const GoldenGradient& golden, double share) {
  double squares = 0, sum = 0, largest = 0;
  for (const float v : ours) squares += double(v) * v, sum += v, largest = std::max(largest, std::fabs(double(v)));
  EXPECT_NEAR(std::sqrt(squares), golden.norm, share * golden.norm) << golden.name;
  EXPECT_NEAR(sum, golden.sum, share * golden.norm * std::sqrt(double(ours.size()))) << golden.name;
  EXPECT_NEAR(largest, golden.largest, share * golden.largest) << golden.name;
  EXPECT_FALSE(golden.samples.empty()) << golden.name;
  for (const auto& [i, value] : golden.samples) EXPECT_NEAR(ours.at(i), value, share * golden.largest) << golden.name << " [" << i << "]";
}

class EveryFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Golden, EveryFamily,
                         ::testing::Values("llama", "smollm2", "qwen2", "qwen3", "gpt2", "qwen3_moe", "olmoe", "mixtral", "deepseek_v2",
                                           "deepseek_v3"));

TEST_P(EveryFamily, HasTheLossAndTheGradientsThatPytorchComputes) {
  const Golden golden = read_golden(GetParam());
  ASSERT_GE(golden.gradients.size(), 20u) << "tests/golden/" << GetParam() << ".txt";
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
/// are at most 20 x 1e-3 per weight, and gradients are exact to about 1e-6 of their norm.
TEST_P(EveryFamily, TrainsTwentyStepsAsPytorchDoesInDoublePrecision) {
  const Golden golden = read_golden(GetParam());
  ASSERT_EQ(golden.losses.size(), 20u);
  const auto e = engine_of(golden);
  StepRunner runner(*e);
  const std::vector batches{batch_of(golden, e->model->shape().vocabulary)};
  for (std::size_t step = 0; step < golden.losses.size(); ++step) {
    double loss = 0;
    runner.run(batches, {.learning_rate = 1e-3}, [&] { loss = double(*e->mean_loss().f32()); });
    EXPECT_NEAR(loss, golden.losses[step], 1e-6 * std::max(1.0, golden.losses[step])) << "step " << step + 1;
  }
}

}  // namespace
}  // namespace octet::train
