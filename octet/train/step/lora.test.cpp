#include <gtest/gtest.h>

#include "octet/io/safetensors_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/peft_folder.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/golden.testing.hpp"
#include "octet/train/step/weights.hpp"

// Adapters against PEFT: tests/golden/lora.txt, which tests/peers/lora.py made. They come in and go out as PEFT folders, so names and
// layouts are held to PEFT's meaning as well.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;

struct Lora {
  Golden base;         // its gradients are names and shapes of the model's tensors
  std::string config;  // adapter_config.json
  Golden trained;      // losses, logits, and adapters in the place of gradients
};

Lora read_lora(const std::string& family) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/lora.txt");
  Lora out{.base = read_golden(family)};
  std::string now, sample;
  double loss = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "model") line >> now;
    if (now != family || key == "model" || key == "#") continue;
    if (key == "peft") std::getline(line, out.config);
    else if (key == "logits")
      for (line >> out.trained.largest_logit; line >> sample;) out.trained.logits.push_back(sample_of(sample));
    else if (key == "losses")
      while (line >> loss) out.trained.losses.push_back(loss);
    else out.trained.gradients.push_back(gradient_of(key, line));
  }
  return out;
}

/// lora.py's first values, as a folder beside that of the base.
void write_adapters(const Scratch& scratch, const Lora& lora) {
  scratch.write("first/adapter_config.json", lora.config);
  std::vector<io::TensorSpec> specs;
  for (const GoldenGradient& g : lora.trained.gradients) specs.push_back({g.name, io::StoredDType::f32, g.shape});
  io::SafetensorsWriter writer(scratch.at("first/adapter_model.safetensors"), specs);
  for (const GoldenGradient& g : lora.trained.gradients) {
    std::vector<float> values = start(g);
    if (g.name.find("lora_B") != std::string::npos)
      for (float& v : values) v /= 8;
    writer.append(g.name, io::from_f32(values, io::StoredDType::f32));
  }
  writer.commit();
}

std::unique_ptr<Engine> engine_of(const Scratch& scratch, const Lora& lora) {
  write_model(scratch, lora.base), write_adapters(scratch, lora);
  const models::ModelShape shape = models::read_hugging_face_shape(scratch.at("model"));
  const optim::OptimizerConfig optimizer{
      .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_grad_norm = 1.0};
  const models::AdapterConfig adapters = models::completed({.init = scratch.at("first")}, shape);
  auto e = std::make_unique<Engine>(
      EngineConfig{
          .shape = shape, .precision = {.recipe = "fp32"}, .optimizer = optimizer, .sequence = lora.base.length, .adapters = adapters},
      Device::cpu, machine::machine_target(Device::cpu));
  load_weights(*e, scratch.at("model"));
  load_adapters(*e, adapters, adapters.init);
  return e;
}

void expect_logits(Engine& e, const Golden& golden, const data::Batch& batch, double share) {
  const models::ModelShape& shape = e.model->shape();
  const Scope scope(e.stream);
  const std::int64_t tokens = batch.rows * batch.length, padded = shape.padded_vocabulary();
  const Tensor ids = e.stream.empty({tokens}, DType::i32), logits = e.stream.empty({tokens, padded}, DType::f32);
  octet::upload(e.stream, batch.inputs.data(), ids);
  e.model->logits(e.stream, {.tokens = ids, .sequence = batch.length}, {}, batch.length, logits);
  for (const auto& [i, value] : golden.logits) {
    const std::int64_t at = std::int64_t(i) / shape.vocabulary * padded + std::int64_t(i) % shape.vocabulary;
    EXPECT_NEAR(logits.f32()[at], value, share * golden.largest_logit) << i;
  }
}

class EveryBase : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Lora, EveryBase, ::testing::Values("llama", "qwen3", "gpt2", "qwen3_moe"));

// Bounds are those of whole models (golden.test.cpp), times the tenfold rate.
TEST_P(EveryBase, TrainsTwentyStepsAsPeftDoesInDoublePrecision) {
  const Lora lora = read_lora(GetParam());
  ASSERT_EQ(lora.trained.losses.size(), 20u);
  const Scratch scratch;
  const auto e = engine_of(scratch, lora);
  StepRunner runner(*e);
  const std::vector batches{batch_of(lora.base, e->model->shape().vocabulary)};
  for (std::size_t step = 0; step < lora.trained.losses.size(); ++step) {
    double loss = 0;
    runner.run(batches, {.learning_rate = 1e-2}, [&] { loss = double(*e->mean_loss().f32()); });
    EXPECT_NEAR(loss, lora.trained.losses[step], 1e-5 * std::max(1.0, lora.trained.losses[step])) << "step " << step + 1;
  }
  constexpr double share = 1e-5;
  expect_logits(*e, lora.trained, batches[0], share);
  const models::AdapterConfig adapters = models::completed({.init = scratch.at("first")}, e->model->shape());
  save_adapters(*e, adapters, scratch.at("trained"), scratch.at("model"));
  const io::SafetensorsFile file = io::SafetensorsFile::open(scratch.at("trained/adapter_model.safetensors"));
  EXPECT_EQ(file.tensors().size(), lora.trained.gradients.size());
  for (const GoldenGradient& g : lora.trained.gradients) {
    const auto tensor = file.find(g.name);
    ASSERT_TRUE(tensor) << g.name;
    ASSERT_EQ(std::vector(tensor->shape.begin(), tensor->shape.end()), g.shape) << g.name;
    expect_near(to_f32(*tensor), g, share);
  }
  Engine merged({.shape = e->model->shape(), .precision = {.recipe = "fp32"}, .sequence = lora.base.length}, Device::cpu,
                machine::machine_target(Device::cpu));
  load_weights(merged, io::TensorFolder::open(scratch.at("model")), models::read_peft_folder(scratch.at("trained"), e->model->shape()));
  expect_logits(merged, lora.trained, batches[0], share);
}

}  // namespace
}  // namespace octet::train
