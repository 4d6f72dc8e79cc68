#include <gtest/gtest.h>

#include <numeric>

#include "octet/io/safetensors_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/peft_folder.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/golden.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/testing.hpp"

// Adapters against PEFT: tests/golden/lora.txt, which tests/peers/lora.py made. They come in and go out as PEFT folders, so names and
// layouts are held to PEFT's meaning as well.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;

struct Lora {
  Golden base;         // its gradients are names and shapes of the model's tensors
  std::string config;  // adapter_config.json
  double dropout = 0;
  Golden trained;  // losses, logits, and adapters in the place of gradients
};

Lora read_lora(const std::string& name) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/lora.txt");
  Lora out;
  std::string now, sample;
  double loss = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string key;
    line >> key;
    std::string family;
    if (key == "model" && line >> now >> family && now == name) out.base = read_golden(family);
    if (now != name || key == "model" || key == "#") continue;
    if (key == "peft") std::getline(line, out.config);
    else if (key == "dropout") line >> out.dropout;
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
  const models::AdapterConfig adapters = models::completed({.dropout = lora.dropout, .init = scratch.at("first")}, shape);
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
INSTANTIATE_TEST_SUITE_P(Lora, EveryBase, ::testing::Values("llama", "qwen3", "gpt2", "qwen3_moe", "llama_dropout", "qwen3_moe_experts"));

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
  const models::AdapterConfig adapters = models::completed({.dropout = lora.dropout, .init = scratch.at("first")}, e->model->shape());
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

EngineConfig small_lora(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = small_engine("llama", recipe, recompute);
  c.adapters = {.rank = 4, .alpha = 6};
  return c;
}

EngineConfig small_experts(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = small_engine("qwen3_moe", recipe, recompute);
  c.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true};
  c.adapters = {.rank = 4, .alpha = 6, .targets = {"all-linear", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"}};
  return c;
}

EngineConfig small_dropout(const std::string& recipe, const nn::Recompute& recompute = {}) {
  EngineConfig c = small_lora(recipe, recompute);
  c.adapters.dropout = 0.3;
  return c;
}

// Bytes of weights, gradients and states per parameter of a block's matrices, without those of adapters: FP32 master, gradient and moments,
// and BF16 or FP32 operands.
double bytes_per_frozen(const std::string& recipe, scaling::WeightCodes codes) {
  struct Bytes {
    double all = 0, frozen = 0, adapters = 0;
  };
  const auto planned = [&](std::int64_t layers) {
    EngineConfig c = small_lora(recipe);
    c.shape.layers = layers, c.shape.width = 512, c.shape.hidden = 1536, c.shape.head_dim = 128, c.precision.weights = codes;
    const DryRun dry = dry_run(c, {.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132}, 1, 1);
    Bytes out;
    for (const Category k : {Category::weights, Category::weight_operands, Category::gradients, Category::optimizer})
      out.all += double(dry.memory.by_category[std::size_t(k)]);
    for (const models::AdaptedWeight& w : models::adapted_weights(c.shape, c.adapters))
      out.adapters += double(4 * (std::int64_t(w.modules.size()) * w.in + w.rows())), out.frozen += double(w.out * w.in);
    return out;
  };
  const Bytes few = planned(2), many = planned(10);
  const double per_adapter = recipe == "fp32" ? 16 : 18, norms = 8 * 2 * 512 * 4;
  return (many.all - few.all - norms - per_adapter * (many.adapters - few.adapters)) / (many.frozen - few.frozen);
}

TEST(Lora, FrozenMatricesHaveOneByteOrTwoByTheirRecipe) {
  using enum scaling::WeightCodes;
  for (const auto& [recipe, codes, bytes] :
       {std::tuple("fp32", cached, 4.0), std::tuple("bf16", cached, 2.0), std::tuple("current", cached, 2.0),
        std::tuple("current", on_demand, 1.0), std::tuple("delayed", on_demand, 1.0), std::tuple("block128", cached, 2.0),
        std::tuple("block128", on_demand, 1.0), std::tuple("rowwise", cached, 2.0), std::tuple("rowwise", on_demand, 2.0)}) {
    EXPECT_GE(bytes_per_frozen(recipe, codes), bytes) << recipe;
    EXPECT_LE(bytes_per_frozen(recipe, codes), 1.02 * bytes) << recipe << ", with scales";
  }
  EXPECT_LE(bytes_per_frozen("mxfp8", cached), 2 * (1 + 1.0 / 16)) << "a byte per 32 values in both orientations, with padding";
}

// One of two parameters of a module has a name of its own in PEFT's files.
TEST(Lora, FoldersOfEitherParameterOfExpertsComeBack) {
  const Scratch scratch;
  for (const std::vector<std::string>& targets : {std::vector<std::string>{"mlp.experts.gate_up_proj"},
                                                  {"mlp.experts.down_proj"},
                                                  {"mlp.experts.down_proj", "mlp.experts.gate_up_proj"},
                                                  {"q_proj", "model.layers.1.mlp.experts.down_proj"}}) {
    const models::ModelShape shape = small_experts("fp32").shape;
    models::TrainedAdapters out{.config = {.rank = 2, .alpha = 3, .targets = targets}, .values = {}};
    for (models::AdaptedWeight& w : models::adapted_weights(shape, out.config)) {
      std::vector<float> a(std::size_t(std::int64_t(w.modules.size()) * 2 * w.in)), b(std::size_t(w.rows() * 2));
      std::iota(a.begin(), a.end(), 1.0f), std::iota(b.begin(), b.end(), 0.5f);
      out.values.push_back({std::move(w), std::move(a), std::move(b)});
    }
    const std::string folder = scratch.at(joined(targets));
    models::save_peft_folder(folder, out, shape, "model");
    const models::TrainedAdapters back = models::read_peft_folder(folder, shape);
    EXPECT_EQ(back.config.targets, targets);
    ASSERT_EQ(back.values.size(), out.values.size());
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      EXPECT_EQ(back.values[i].weight.parameter, out.values[i].weight.parameter);
      EXPECT_EQ(back.values[i].a, out.values[i].a);
      EXPECT_EQ(back.values[i].b, out.values[i].b);
    }
  }
}

TEST(Lora, RecomputationChangesNoBit) {
  using Case = std::pair<const char*, EngineConfig (*)(const std::string&, const nn::Recompute&)>;
  for (const auto& [recipe, make] : {Case{"bf16", small_dropout}, Case{"current", small_dropout}, Case{"rowwise", small_dropout},
                                     Case{"bf16", small_experts}, Case{"block128", small_experts}}) {
    std::vector<float> wanted;
    for (const std::vector<std::string>& parts : {std::vector<std::string>{}, {"norm", "activation"}, {"mlp", "attention"}, {"block"}}) {
      Engine e(make(recipe, nn::Recompute::named(parts)), Device::cpu, machine::machine_target(Device::cpu));
      train_steps(e, 2, 2);
      const std::vector<float> values = nn::flat_values(e.stream, e.parameters.values());
      if (wanted.empty()) wanted = values;
      EXPECT_EQ(values, wanted) << recipe << ::testing::PrintToString(parts);
    }
  }
}

// Dropped values are those of the same tokens and columns on every rank. Sums over ranks are added in another order.
TEST(Lora, RanksOfEveryAxisTrainTheAdaptersOfOneRank) {
  const auto batches_of = [](int step, std::int64_t group, std::int64_t groups) {
    std::vector<data::Batch> out;
    for (std::int64_t i = group; i < 4; i += groups) out.push_back(random_batch(1, 32, 61, 10 * std::uint64_t(step) + std::uint64_t(i)));
    return out;
  };
  for (const char* recipe : {"fp32", "current"}) {
    EngineConfig config = small_dropout(recipe);
    const auto steps = [&](const Mesh& mesh) {
      return steps_on_mesh(config, mesh, 3, 1e-2, [&](int step, std::int64_t group) { return batches_of(step, group, mesh.data); });
    };
    const MeshSteps one = steps({});
    for (const Mesh& mesh :
         {Mesh{.data = 2}, Mesh{.data = 2, .zero = 1}, Mesh{.data = 4, .zero = 2}, Mesh{.data = 2, .zero = 3}, Mesh{.context = 2},
          Mesh{.tensor = 2}, Mesh{.tensor = 4}, Mesh{.pipeline = 2}, Mesh{.tensor = 2, .data = 2, .zero = 2},
          Mesh{.tensor = 2, .data = 2, .zero = 3}, Mesh{.tensor = 2, .context = 2, .pipeline = 2, .zero = 1}}) {
      const double share = recipe == std::string("fp32") ? 1e-5 : 0.1;  // codes of one rank's rows follow other maxima
      const MeshSteps many = steps(mesh);
      EXPECT_LT(distance(one.gradients, many.gradients), share) << recipe << " " << mesh.text();
      for (std::size_t s = 0; s < one.losses.size(); ++s)
        EXPECT_NEAR(many.losses[s], one.losses[s], 0.1 * share * one.losses[s]) << recipe << " " << mesh.text() << " step " << s;
    }
  }
}

TEST(Lora, EveryScheduleOfStagesAndFamilyThatRanksDivideTrainsThem) {
  const auto batches_of = [](int step, std::int64_t) {
    std::vector<data::Batch> out;
    for (int i = 0; i < 4; ++i) out.push_back(random_batch(1, 32, 61, 10 * std::uint64_t(step) + std::uint64_t(i)));
    return out;
  };
  const auto differ = [&](const EngineConfig& one, const EngineConfig& many, const Mesh& mesh) {
    const MeshSteps a = steps_on_mesh(one, {}, 2, 1e-2, batches_of), b = steps_on_mesh(many, mesh, 2, 1e-2, batches_of);
    EXPECT_NEAR(a.losses[1], b.losses[1], 1e-6 * a.losses[1]);
    return distance(a.gradients, b.gradients);
  };
  EngineConfig config = small_dropout("fp32");
  config.shape.layers = 4, config.shape.tied = false;
  for (const auto schedule : {parallel::Schedule::interleaved, parallel::Schedule::zero_bubble, parallel::Schedule::dualpipe_v}) {
    EngineConfig many = config;
    many.ranks.schedule = schedule, many.ranks.chunks = schedule == parallel::Schedule::interleaved ? 2 : 1;
    EXPECT_LT(differ(config, many, {.pipeline = 2}), 1e-5) << to_text(schedule);
  }
  for (const Mesh& mesh : {Mesh{.data = 2, .zero = 2}, Mesh{.pipeline = 2}})  // data ranks have equal batches here
    EXPECT_LT(differ(small_experts("fp32"), small_experts("fp32"), mesh), 1e-5) << "experts " << mesh.text();
  for (const char* family : {"qwen2", "qwen3", "phi3", "gemma3_text"}) {
    EngineConfig other = small_engine(family, "fp32");
    other.adapters = {.rank = 4,
                      .alpha = 6,
                      .targets = family == std::string("phi3") ? std::vector<std::string>{"all-linear"}
                                                               : std::vector<std::string>{"k_proj", "gate_proj", "o_proj"}};
    other.adapters.dropout = 0.3;
    for (const Mesh& mesh : {Mesh{.tensor = 4}, Mesh{.pipeline = 2}}) EXPECT_LT(differ(other, other, mesh), 1e-5) << family << mesh.text();
  }
}

// One scale of a matrix that several ranks have.
TEST(Lora, TensorRanksEncodeTheirPartsOfFrozenMatricesAsOneRankDoes) {
  EngineConfig config = small_lora("current");
  config.precision.weights = scaling::WeightCodes::on_demand;
  std::map<std::string, std::vector<float>> scales;
  for (const Mesh& mesh : {Mesh{}, Mesh{.tensor = 2}}) {
    mesh.set(config.ranks);
    comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
      Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
      e.initialize(7);
      if (c.rank() > 0) return;
      for (const Parameter* p : e.frozen.list())
        if (p->codes) scales[p->path].push_back(*p->codes.descales.f32());
    });
  }
  EXPECT_EQ(scales.size(), 8u);
  for (const auto& [path, of] : scales) EXPECT_EQ(of[0], of[1]) << path;
}

// Of stored adapters, the loss of an evaluation does not depend on a dropout of training.
TEST(Lora, EvaluationDropsNothing) {
  std::vector<double> losses;
  for (const EngineConfig& config : {small_lora("fp32"), small_dropout("fp32")}) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    e.initialize(7);
    for (std::size_t i = 0; i < e.parameters.list().size(); ++i) {
      const std::vector<float> values(std::size_t(e.parameters.list()[i]->shape.count()), 0.01f * float(i % 3 + 1));
      e.parameters.set_values(e.stream, i, values.data());
    }
    losses.push_back(evaluate_batch(e, random_batch(2, 32, 61, 5)).loss);
    StepRunner runner(e);
    runner.run(std::vector{random_batch(2, 32, 61, 5)}, {.learning_rate = 0}, [&] { losses.push_back(double(*e.mean_loss().f32())); });
  }
  EXPECT_EQ(losses[0], losses[2]);
  EXPECT_NE(losses[1], losses[3]) << "a step that trains drops some";
}

TEST(Lora, LayoutsThatDivideAdaptersAreRefusedByTheirKey) {
  const auto refusal = [](const Mesh& mesh, const optim::OptimizerConfig& optimizer = {}) {
    EngineConfig config = small_lora("bf16");
    config.shape.layers = 4, config.optimizer = optimizer;
    mesh.set(config.ranks), config.planned_ranks = int(mesh.data);
    return octet::testing::error_of<ConfigError>([&] { dry_run(config, {}, 1, 1); });
  };
  EXPECT_EQ(refusal({.tensor = 2}, {.gradients = Storage::e4m3_tensor}),
            "ranks.tensor = 2: 2 ranks have copies of values of layers.0.attn.qkv.lora_a, whose gradients in e4m3_tensor cannot be "
            "summed; set optim.gradients = \"bf16\"");
}

TEST(Lora, TargetsAndRanksThatAModelDoesNotHaveAreRefused) {
  const auto refusal = [](const std::string& family, std::int64_t rank, std::vector<std::string> targets) {
    models::ModelShape shape = small_shape(family);
    if (family == "qwen3_moe") shape.experts = {.number = 4, .chosen = 2, .width = 32};
    return octet::testing::error_of<ConfigError>([&] { models::adapted_weights(shape, {.rank = rank, .targets = std::move(targets)}); });
  };
  EXPECT_EQ(
      refusal("llama", 8, {"q_proj", "query"}),
      "lora.targets: \"query\" matches no linear module of the model; there are down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, "
      "v_proj and all-linear");
  EXPECT_EQ(refusal("llama", 33, {"k_proj"}),
            "lora.rank = 33: model.layers.0.self_attn.k_proj is a matrix of 32 x 64, whose rank is at most 32; lower it");
  EXPECT_EQ(refusal("llama", 8, {}), "lora.targets is empty; name modules such as \"q_proj\", or \"all-linear\"");
  EXPECT_EQ(
      refusal("llama", 8, {"lm_head"}),
      "lora.targets: \"lm_head\" names the projection to the vocabulary, for which this version has no adapters; name other modules, or "
      "\"all-linear\"");
  EXPECT_EQ(refusal("qwen3_moe", 8, {"q_proj", "up_proj"}),
            "lora.targets: \"up_proj\" names matrices of single experts, for which this version has no adapters; those of all experts are "
            "\"mlp.experts.gate_up_proj\" and \"mlp.experts.down_proj\"");
  EXPECT_EQ(refusal("qwen3_moe", 33, {"experts.down_proj"}),
            "lora.rank = 33: model.layers.0.mlp.experts.down_proj is a matrix of 64 x 32, whose rank is at most 32; lower it");
  models::ModelShape shape = small_shape("qwen3_moe");
  shape.experts = {.number = 4, .chosen = 2, .width = 32};
  EXPECT_EQ(octet::testing::error_of<ConfigError>(
                [&] { models::adapted_weights(shape, {.rank = 4, .targets = {"mlp.experts.down_proj"}, .dropout = 0.1}); }),
            "lora.dropout = 0.1: adapters of experts (model.layers.0.mlp.experts.down_proj) have none, as in PEFT; set it to 0, or name no "
            "experts in lora.targets");
}

}  // namespace
}  // namespace octet::train
