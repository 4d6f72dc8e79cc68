#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/train/step/small_model.testing.hpp"
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
};

GoldenGradient gradient_of(const std::string& name, std::istringstream& line) {
  GoldenGradient g{.name = name};
  std::string shape, sample;
  line >> shape >> g.norm >> g.sum >> g.largest;
  std::istringstream dimensions(shape);
  for (std::string d; std::getline(dimensions, d, 'x');) g.shape.push_back(std::stoll(d));
  while (line >> sample) g.samples.emplace_back(std::stoull(sample), std::stod(sample.substr(sample.find(':') + 1)));
  return g;
}

Golden read_golden(const std::string& family) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/" + family + ".txt");
  Golden golden;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "config") std::getline(line, golden.config);
    else if (key == "tokens") line >> golden.rows >> golden.length;
    else if (key == "loss") line >> golden.loss;
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
INSTANTIATE_TEST_SUITE_P(Golden, EveryFamily, ::testing::Values("llama", "qwen2", "qwen3", "gpt2"));

TEST_P(EveryFamily, HasTheLossAndTheGradientsThatPytorchComputes) {
  const Golden golden = read_golden(GetParam());
  ASSERT_GT(golden.gradients.size(), 20u) << "tests/golden/" << GetParam() << ".txt";
  const Scratch scratch;
  write_model(scratch, golden);
  const models::ModelShape shape = models::read_hugging_face_shape(scratch.at("model"));
  Engine e({.shape = shape, .precision = {.recipe = "fp32"}, .optimizer = optim::AdamWConfig{}, .sequence = golden.length}, Device::cpu,
           machine::machine_target(Device::cpu));
  models::load_hugging_face(scratch.at("model"), shape, e.parameters);
  const double share = tolerance(shape, golden);
  std::vector<Tensor> values;
  StepRunner(e).run(std::vector{batch_of(golden, shape.vocabulary)}, {}, [&] {
    EXPECT_NEAR(*e.mean_loss().f32(), golden.loss, share * golden.loss);
    for (Parameter* p : e.parameters.list()) std::swap(p->value, values.emplace_back(p->gradient.data()));
    models::save_hugging_face(scratch.at("gradients"), shape, e.parameters);  // gradients under the file's names
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

}  // namespace
}  // namespace octet::train
