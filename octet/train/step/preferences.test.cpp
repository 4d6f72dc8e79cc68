#include "octet/train/step/preferences.hpp"

#include <gtest/gtest.h>

#include <array>

#include "octet/data/dataset.hpp"
#include "octet/data/pair_rows.hpp"
#include "octet/data/pairs.testing.hpp"
#include "octet/io/safetensors_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/peft_folder.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/golden.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/testing.hpp"

// Direct preference optimization against TRL's formula in PyTorch: tests/golden/dpo.txt, which tests/peers/dpo.py made.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;

struct Dpo {
  nn::PreferenceConfig config;
  std::vector<data::PairOfIds> pairs;
  std::string peft;                          // adapter_config.json
  std::vector<std::array<double, 6>> steps;  // loss, rewards of both, accuracy, log-probabilities of both
  std::vector<GoldenGradient> gradients, trained;
};

std::vector<std::int32_t> drawn(const std::string& name, std::size_t count) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::int32_t(draw(name, i) % 61));
  return out;
}

Dpo read_dpo(const std::string& wanted) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/dpo.txt");
  Dpo out;
  std::string now, name;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    if (key == "case") line >> now;
    if (now != wanted || key == "#") continue;
    if (key == "case") line >> out.config.beta >> out.config.label_smoothing;
    if (key == "pairs") {
      std::size_t q = 0, c = 0, r = 0;
      for (int i = 0; line >> q >> c >> r; ++i)
        out.pairs.push_back(
            {drawn(format("pair {} question", i), q), drawn(format("pair {} chosen", i), c), drawn(format("pair {} rejected", i), r)});
    }
    if (key == "peft") std::getline(line, out.peft);
    if (key == "step")
      for (double& x : out.steps.emplace_back()) line >> x;
    if (key == "gradient") line >> name, out.gradients.push_back(gradient_of(name, line));
    if (key == "trained") line >> name, out.trained.push_back(gradient_of(name, line));
  }
  return out;
}

constexpr std::int64_t length = 48;

/// Rows of 48 tokens, of which the first ones have several pairs and the last one has one.
struct PairData {
  Scratch scratch;
  data::Dataset dataset;
  std::shared_ptr<const data::PairRows> rows;

  explicit PairData(const std::vector<data::PairOfIds>& pairs, std::int64_t tokens = length)
      : dataset(data::write_pairs(scratch.at("pairs"), pairs)),
        rows(std::make_shared<data::PairRows>(dataset, data::TokenRanges{{0, dataset.token_count()}}, tokens, "training",
                                              data::Documents::masked)) {}
  data::EvalBatches batches(std::int64_t of_rows) const { return {rows, of_rows, 0}; }
  PairReferences references() const { return {std::int64_t(dataset.document_count() / 2), dataset.fingerprint()}; }
};

std::vector<data::Batch> micro_batches(const PairData& data, std::int64_t rows, const PairReferences& references) {
  std::vector<data::Batch> out;
  const data::EvalBatches all = data.batches(rows);
  for (std::uint64_t i = 0; i < all.size(); ++i) references.fill(out.emplace_back(all[i]));
  return out;
}

EngineConfig golden_config(const Scratch& scratch, const Dpo& dpo) {
  const Golden base = read_golden("llama");
  write_model(scratch, base);
  EngineConfig c{.shape = models::read_hugging_face_shape(scratch.at("model")), .precision = {.recipe = "fp32"}, .sequence = length};
  c.optimizer =
      optim::OptimizerConfig{.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .max_grad_norm = 1.0};
  c.document_mask = true, c.preference = dpo.config;
  return c;
}

/// A step's means against those of the file. The loss is a float near 1; log-probabilities are sums of up to 10 losses of tokens, of about
/// 40, and rewards are differences of these.
void expect_step(const telemetry::PreferenceFigures& p, double loss, const std::array<double, 6>& wanted, const std::string& at) {
  EXPECT_NEAR(loss, wanted[0], 1e-6) << at;
  EXPECT_NEAR(p.chosen_reward, wanted[1], 1e-5) << at;
  EXPECT_NEAR(p.rejected_reward, wanted[2], 1e-5) << at;
  EXPECT_EQ(p.accuracy, wanted[3]) << at;
  EXPECT_NEAR(p.chosen_log_probability, wanted[4], 1e-6 * std::abs(wanted[4])) << at;
  EXPECT_NEAR(p.rejected_log_probability, wanted[5], 1e-6 * std::abs(wanted[5])) << at;
}

/// All steps of the file; after_first sees the engine with the first step's gradients.
template <class AfterFirst>
void run_steps(Engine& e, const Dpo& dpo, std::int64_t rows, const AfterFirst& after_first) {
  const PairData data(dpo.pairs);
  ASSERT_EQ(data.rows->count(), 2u);
  StepRunner runner(e);
  PairReferences references = data.references();
  ASSERT_TRUE(references.compute(e, std::vector{data.batches(1)}));
  const std::vector<data::Batch> batches = micro_batches(data, rows, references);
  for (std::size_t s = 0; s < dpo.steps.size(); ++s)
    runner.run(batches, {.learning_rate = 1e-3}, [&] {
      const Readout shown = read_out(e);
      expect_step(shown.preferences, double(shown.loss), dpo.steps[s], format("step {}", s + 1));
      if (s == 0) after_first();
    });
  const Evaluation after = evaluate(e, data.batches(2), nullptr, references);
  EXPECT_EQ(after.tokens, std::int64_t(dpo.pairs.size()));
  EXPECT_LT(after.loss, dpo.steps.back()[0] + 0.01);
  EXPECT_EQ(after.preferences.accuracy, 1);
}

TEST(Preferences, TrainTwentyStepsAsTrlsFormulaDoesInDoublePrecision) {
  const Dpo dpo = read_dpo("full");
  ASSERT_EQ(dpo.steps.size(), 20u);
  for (const std::int64_t rows : {2, 1}) {  // of a micro-batch
    const Scratch scratch;
    Engine e(golden_config(scratch, dpo), Device::cpu, machine::machine_target(Device::cpu));
    load_weights(e, scratch.at("model"));
    const double tokens_per_pair = double(2 * length) / double(dpo.pairs.size());
    run_steps(e, dpo, rows, [&] {
      std::vector<Stored> values;
      for (Parameter* p : e.parameters.list()) std::swap(p->value, values.emplace_back(p->gradient.stored()));
      models::save_hugging_face(scratch.at("gradients"), e.model->shape(), e.parameters.list());
      for (std::size_t i = 0; i < values.size(); ++i) e.parameters.list()[i]->value = values[i];
      const io::TensorFolder gradients = io::TensorFolder::open(scratch.at("gradients"));
      for (const GoldenGradient& g : dpo.gradients) {
        std::vector<float> ours = to_f32(gradients.tensor(g.name));
        for (float& x : ours) x = float(double(x) * tokens_per_pair);
        expect_near(ours, g, 1e-5);
      }
    });
    save_weights(e, scratch.at("trained"));
    const io::TensorFolder trained = io::TensorFolder::open(scratch.at("trained"));
    for (const GoldenGradient& g : dpo.trained) expect_near(to_f32(trained.tensor(g.name)), g, 1e-4);
  }
}

/// The adapters of dpo.py: A from its start, B of zeros.
void write_first_adapters(const Scratch& scratch, const Dpo& dpo) {
  scratch.write("first/adapter_config.json", dpo.peft);
  std::vector<io::TensorSpec> specs;
  for (const GoldenGradient& g : dpo.gradients) specs.push_back({g.name, io::StoredDType::f32, g.shape});
  io::SafetensorsWriter writer(scratch.at("first/adapter_model.safetensors"), specs);
  for (const GoldenGradient& g : dpo.gradients) {
    std::vector<float> values = start(g);
    if (g.name.find("lora_B") != std::string::npos) std::ranges::fill(values, 0.0f);
    writer.append(g.name, io::from_f32(values, io::StoredDType::f32));
  }
  writer.commit();
}

TEST(Preferences, OfAdaptersHaveTheFrozenBaseAsTheirReference) {
  const Dpo dpo = read_dpo("lora");
  ASSERT_EQ(dpo.steps.size(), 20u);
  const Scratch scratch;
  EngineConfig config = golden_config(scratch, dpo);
  write_first_adapters(scratch, dpo);
  config.adapters = models::completed({.init = scratch.at("first")}, config.shape);
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  load_weights(e, scratch.at("model"));
  load_adapters(e, config.adapters, config.adapters.init);
  run_steps(e, dpo, 1, [] {});
  save_adapters(e, config.adapters, scratch.at("trained"), scratch.at("model"));
  const io::SafetensorsFile file = io::SafetensorsFile::open(scratch.at("trained/adapter_model.safetensors"));
  for (const GoldenGradient& g : dpo.trained) {
    const auto tensor = file.find(g.name);
    ASSERT_TRUE(tensor) << g.name;
    expect_near(to_f32(*tensor), g, 1e-4);
  }
}

EngineConfig small_preferences(const std::string& recipe) {
  EngineConfig c = small_engine("llama", recipe);
  c.document_mask = true, c.preference = {.beta = 0.2};
  return c;
}

// Sums over ranks, stages and parts of layers in another order. Steps of ranks have unequal numbers of pairs.
TEST(Preferences, OfMeshesOfRanksAreThoseOfOneRank) {
  const PairData data(data::random_pairs(24, 61, 3), 32);
  const std::vector all{data.batches(2)};
  const EngineConfig config = small_preferences("fp32");
  PairReferences references = data.references();
  {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    begin_steps(e);
    references.compute(e, all);
  }
  const auto begin = [&](Engine& e) {
    StepRunner runner = begin_steps(e);
    PairReferences own = data.references();
    own.compute(e, all);
    data::Batch here = data.batches(1)[0], one = here;
    own.fill(here), references.fill(one);
    for (std::size_t i = 0; i < 2 * std::size_t(one.pairs.count()); ++i)
      EXPECT_NEAR(here.pairs.references[i], one.pairs.references[i], 1e-6 * std::abs(one.pairs.references[i])) << i;
    return runner;
  };
  const auto steps = [&](const Mesh& mesh) {
    EngineConfig c = config;
    c.micro_batches = 4 / mesh.data;
    const auto batches_of = [&](int step, std::int64_t group) {
      std::vector<data::Batch> out;
      for (std::int64_t i = group; i < 4; i += mesh.data)
        references.fill(out.emplace_back(data.batches(1)[std::uint64_t(4 * step + i) % data.rows->count()]));
      return out;
    };
    return steps_on_mesh(c, mesh, 3, 1e-2, batches_of, begin);
  };
  const MeshSteps one = steps({});
  for (const Mesh& mesh :
       {Mesh{.data = 2}, Mesh{.data = 2, .zero = 1}, Mesh{.data = 4, .zero = 3}, Mesh{.tensor = 2}, Mesh{.pipeline = 2}}) {
    const MeshSteps many = steps(mesh);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s], one.losses[s], 1e-6) << mesh.text() << " step " << s;
  }
}

TEST(Preferences, TheFirstStepOfEveryRecipeHasMarginsOfZero) {
  const PairData data(data::random_pairs(8, 61, 3), 32);
  for (const char* recipe : {"fp32", "bf16", "fp16", "current", "rowwise", "block128", "mxfp8"}) {
    Engine e(small_preferences(recipe), Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = begin_steps(e);
    PairReferences references = data.references();
    references.compute(e, std::vector{data.batches(1)});
    double loss = 0;
    telemetry::PreferenceFigures figures;
    for (int step = 0; step < 6; ++step)
      runner.run(micro_batches(data, 1, references), {.learning_rate = 1e-3}, [&] {
        const Readout shown = read_out(e);
        loss = double(shown.loss), figures = shown.preferences;
        if (step > 0) return;
        EXPECT_EQ(shown.loss, float(std::log(2.0))) << recipe;
        EXPECT_EQ(figures.margin(), 0) << recipe;
      });
    EXPECT_LT(loss, 0.6) << recipe;
    EXPECT_GT(figures.margin(), 0.2) << recipe;
  }
}

TEST(Preferences, AreRefusedWherePartsOfAnswersAreOnOtherRanksAndWithoutMasks) {
  EngineConfig c = small_preferences("bf16");
  c.ranks.context = 2, c.planned_ranks = 2;
  const auto refusal = [&] { return octet::testing::error_of<ConfigError>([&] { dry_run(c, {}, 1, 1); }); };
  EXPECT_EQ(refusal(),
            "ranks.context = 2: dpo.beta: ranks would have parts of answers, whose log-probabilities are those of complete ones; set "
            "ranks.context = 1");
  c.ranks.context = 1, c.planned_ranks = 1, c.document_mask = false;
  EXPECT_EQ(refusal(), "dpo.beta = 0.2: pairs of answers lie side by side in a sequence; set data.document_mask = true");
}

}  // namespace
}  // namespace octet::train
