#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/nonfinite.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/study/twin.hpp"

// Gradients in every storage through whole steps: memory, sums over micro-batches, clipping, overflow, training.

namespace octet::train {
namespace {

using namespace octet::train::testing;

class EveryStorage : public ::testing::TestWithParam<Storage> {};
INSTANTIATE_TEST_SUITE_P(Gradients, EveryStorage, ::testing::Values(Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor),
                         [](const auto& info) { return std::string(name(info.param)); });

EngineConfig config_of(Storage gradients, const std::string& recipe = "current") {
  EngineConfig config = small_engine("llama", recipe);
  config.optimizer->gradients = gradients;
  return config;
}
Engine engine_of(const EngineConfig& config) { return Engine(config, Device::cpu, machine::machine_target(Device::cpu)); }

std::vector<data::Batch> micro_batches(std::int64_t n, std::uint64_t seed) {
  std::vector<data::Batch> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back(random_batch(1, 32, 61, seed + std::uint64_t(i)));
  return out;
}

double norm_of(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += double(v) * double(v);
  return std::sqrt(squares);
}

// Of the arena, for GPT-2's shapes: block matrices have 1 byte per value and 1 per 128; sums of many parts stay f32.
TEST(Gradients, OfBlockMatricesInEightBitsTakeAtMostOnePointZeroOneBytesPerParameter) {
  std::map<Storage, double> bytes;
  double narrow = 0, wide = 0;
  for (const Storage storage : {Storage::f32, Storage::bf16, Storage::e4m3, Storage::e4m3_tensor}) {
    EngineConfig config = config_of(storage);
    config.shape = {.family = "gpt2",
                    .width = 768,
                    .layers = 12,
                    .heads = 12,
                    .kv_heads = 12,
                    .head_dim = 64,
                    .hidden = 3072,
                    .vocabulary = 50257,
                    .max_sequence = 1024,
                    .tied = true};
    Engine e(config, Device::null, machine::machine_target(Device::cpu));
    narrow = wide = 0;
    for (const Parameter* p : e.parameters.list()) (p->gradient.may_be_narrow() ? narrow : wide) += double(p->shape.count());
    bytes[storage] =
        double(dry_run(config, machine::machine_target(Device::cpu), 1, 2).memory.by_category[std::size_t(Category::gradients)]) - 4 * wide;
  }
  EXPECT_GT(narrow, 80e6);
  for (const Storage storage : {Storage::e4m3, Storage::e4m3_tensor}) {
    EXPECT_LE(bytes[storage], 1.01 * narrow) << to_text(storage);
    EXPECT_LE(bytes[storage], 0.505 * bytes[Storage::bf16]) << to_text(storage);
    EXPECT_LE(bytes[storage], 0.2525 * bytes[Storage::f32]) << to_text(storage);
  }
}

TEST_P(EveryStorage, ADryRunNeedsTheMemoryAndTheWorkOfARealRun) {
  const EngineConfig config = config_of(GetParam());
  const DryRun dry = dry_run(config, machine::machine_target(Device::cpu), 2, 2);
  Engine e = engine_of(config);
  StepRunner runner = train_steps(e, 1, 2);
  const Work before = e.stream.work();
  runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 1e-2});
  const Work real = e.stream.work() - before;
  runner.run(std::vector{random_batch(2, 32, 61, 1), random_batch(2, 32, 61, 2)}, {.learning_rate = 1e-2, .measure = true});
  evaluate_batch(e, random_batch(2, 32, 61, 1));
  EXPECT_EQ(dry.memory.by_category, e.stream.arena().peak().by_category);
  EXPECT_EQ(dry.step.ops, real.ops);
  EXPECT_EQ(dry.step.bytes, real.bytes);
}

// Each of n additions rounds a partial sum, by a root mean square of at most half of the spacing: 2^-4 of the sum in E4M3, 2^-9 in BF16.
// For independent micro-batches the squares of n partial sums add up to (n + 1) / 2 of the last one's; half as much again is for those that
// are not.
TEST_P(EveryStorage, SumsOfMicroBatchesAreThoseOfF32WithinTheRoundingsOfTheirStorage) {
  constexpr int n = 8;
  std::map<std::string, std::vector<float>> sums[2];
  for (const Storage storage : {Storage::f32, GetParam()}) {
    Engine e = engine_of(config_of(storage, "fp32"));
    begin_steps(e).run(micro_batches(n, 50), {.learning_rate = 0}, [&] {
      for (const Parameter* p : e.parameters.list())
        sums[storage == Storage::f32 ? 0 : 1][p->path] = nn::flat_values(e.stream, std::vector{p->gradient.stored()});
    });
  }
  if (GetParam() == Storage::f32) sums[1] = sums[0];
  const double unit = GetParam() == Storage::f32 ? 0 : GetParam() == Storage::bf16 ? 0x1p-9 : 0x1p-4;
  for (const auto& [path, exact] : sums[0]) {
    std::vector<float> error = sums[1].at(path);
    for (std::size_t i = 0; i < error.size(); ++i) error[i] -= exact[i];
    EXPECT_LE(norm_of(error), 1.5 * unit * std::sqrt((n + 1) / 2.0) * norm_of(exact)) << path;
  }
}

EngineConfig with_coded_ends(const std::string& recipe = "current") {
  EngineConfig config = config_of(Storage::e4m3, recipe);
  config.optimizer->coded_ends = true;
  return config;
}

// As above, of embedding and head, to which chunks of tokens and rows are added; a table with two uses keeps f32.
TEST(Gradients, OfEmbeddingAndHeadInEightBitsAreThoseOfF32WithinTheRoundingsOfTheirStorage) {
  constexpr int n = 8;
  std::map<std::string, std::vector<float>> sums[2];
  for (const bool coded : {false, true}) {
    Engine e = engine_of(coded ? with_coded_ends("fp32") : config_of(Storage::f32, "fp32"));
    begin_steps(e).run(micro_batches(n, 50), {.learning_rate = 0}, [&] {
      for (const Parameter* p : e.parameters.list()) {
        sums[coded][p->path] = nn::flat_values(e.stream, std::vector{p->gradient.stored()});
        if (coded) {
          EXPECT_EQ(p->gradient.coded(), p->role == ParameterRole::matrix) << p->path;
        }
      }
    });
  }
  for (const std::string path : {"embedding.weight", "lm_head.weight"}) {
    ASSERT_EQ(sums[0].count(path), 1u) << path;
    std::vector<float> error = sums[1].at(path);
    for (std::size_t i = 0; i < error.size(); ++i) error[i] -= sums[0].at(path)[i];
    EXPECT_LE(norm_of(error), 1.5 * 0x1p-4 * std::sqrt((n + 1) / 2.0) * norm_of(sums[0].at(path))) << path;
    EXPECT_GT(norm_of(error), 0) << path;
  }
}

// Also where each stage of a pipeline has one of its uses.
TEST(Gradients, OfATiedEmbeddingStayF32) {
  EngineConfig tied = with_coded_ends();
  tied.shape.tied = true;
  for (const int stages : {1, 2}) {
    tied.ranks.pipeline = stages;
    comm::run_on_threads({.ranks = stages, .limit_seconds = 30}, [&](comm::Communicator& c) {
      Engine e(tied, Device::cpu, machine::machine_target(Device::cpu), &c);
      begin_steps(e).run(micro_batches(2, 50), {.learning_rate = 1e-3});
      EXPECT_EQ(e.model->shared_by_ends()->gradient.stored().storage, Storage::f32);
    });
  }
}

TEST(Gradients, OfEmbeddingAndHeadInEightBitsAreThoseOfOneRankOnMeshes) {
  const auto batches_of = [](const Mesh& mesh) {
    return [&mesh](int, int group) {
      std::vector<data::Batch> own;
      for (int i = group; i < 4; i += int(mesh.data)) own.push_back(random_batch(1, 32, 61, 700 + std::uint64_t(i)));
      return own;
    };
  };
  const EngineConfig config = with_coded_ends("fp32");
  const Mesh alone;
  const MeshSteps one = steps_on_mesh(config_of(Storage::f32, "fp32"), alone, 1, 1e-3, batches_of(alone));
  for (const Mesh& mesh : {Mesh{.data = 2},
                           {.data = 2, .zero = 1},
                           {.data = 2, .zero = 3},
                           {.tensor = 2, .data = 2, .zero = 2},
                           {.data = 2, .pipeline = 2, .zero = 1}}) {
    const MeshSteps many = steps_on_mesh(config, mesh, 1, 1e-3, batches_of(mesh));
    EXPECT_LT(distance(one.gradients, many.gradients), 0.15) << mesh.text();
    EXPECT_NEAR(many.norm / one.norm, 1, 0.02) << mesh.text();
  }
}

/// The first moments after one step, which are (1 - beta1) times the gradients that the update used.
class FirstMoments final : public StateVisitor {
 public:
  explicit FirstMoments(Stream& stream) : stream_(stream) {}
  bool restoring() const override { return false; }
  void state(std::string_view, const Tensor&) override {}
  void state(std::string_view name, const StoredSlice& slice, Tiny) override {
    const Stored& s = slice.stored;
    if (!name.ends_with(".m")) return;
    const std::vector<float> values = nn::flat_values(stream_, std::vector{s});
    all.insert(all.end(), values.begin(), values.end());
    ++tensors;
  }
  void state(std::string_view, std::int64_t&) override {}
  void state(std::string_view, double&) override {}
  void state(std::string_view, std::vector<double>&) override {}
  std::vector<float> all;
  std::size_t tensors = 0;

 protected:
  void enter(std::string_view) override {}
  void leave() override {}

 private:
  Stream& stream_;
};

// As published, FP8 gradients were counted in the norm but not clipped.
TEST_P(EveryStorage, TheNormOfAllGradientsThatTheUpdateUsesIsTheOneAskedFor) {
  EngineConfig config = config_of(GetParam());
  config.optimizer->max_grad_norm = 0.01;
  Engine e = engine_of(config);
  double stored = 0;
  begin_steps(e).run(micro_batches(4, 70), {.learning_rate = 1e-3},
                     [&] { stored = norm_of(nn::flat_values(e.stream, e.parameters.gradients())); });
  const ops::AdamWStep step = e.optimizer->last(e.stream);
  EXPECT_GT(step.gradient_norm, 0.1) << "clipping acts";
  EXPECT_NEAR(step.gradient_norm, stored, 1e-6 * stored) << "the norm is of the values that codes hold";
  FirstMoments moments(e.stream);
  e.optimizer->visit_state(moments);
  EXPECT_EQ(moments.tensors, e.parameters.list().size());
  const double one_minus_beta1 = 1 - config.optimizer->beta1;
  EXPECT_NEAR(norm_of(moments.all) / one_minus_beta1, 0.01, 1e-6 * 0.01);
}

Parameter& parameter(Engine& e, const std::string& path) {
  for (Parameter* p : e.parameters.list())
    if (p->path == path) return *p;
  throw ContractError("no parameter " + path);
}
void multiply(Engine& e, const std::string& path, float factor) {
  const Tensor& t = parameter(e, path).value.values();
  for (std::int64_t i = 0; i < t.count(); ++i) t.f32()[i] *= factor;
}

// A hidden activation of 2^120, times a gradient of 2^10 or more, is a product that f32 does not hold; the way through `down`, which is as
// small, stays finite.
TEST_P(EveryStorage, AnOverflowInOneGradientSkipsTheStepAndIsNamed) {
  Engine e = engine_of(config_of(GetParam(), "bf16"));
  e.parameters.initialize(e.stream, 7);
  const auto enlarge = [&](int sign) {
    multiply(e, "layers.1.mlp.gate_up.weight", std::ldexp(1.0f, sign * 60)),
        multiply(e, "layers.1.mlp.down.weight", std::ldexp(1.0f, sign * -120));
    multiply(e, "lm_head.weight", std::ldexp(1.0f, sign * 30));
  };
  enlarge(1);
  StepRunner runner(e);
  const std::vector<data::Batch> batches = micro_batches(3, 90);
  const std::vector<float> before = nn::flat_values(e.stream, e.parameters.values());
  std::string named;
  runner.run(batches, {.learning_rate = 1e-3}, [&] { named = first_nonfinite(e, batches); });
  EXPECT_EQ(e.optimizer->last(e.stream).skip, 1);
  EXPECT_EQ(named, "layers.1.mlp.down.weight.grad");
  EXPECT_TRUE(std::isfinite(*e.mean_loss().f32()));
  EXPECT_EQ(nn::flat_values(e.stream, e.parameters.values()), before);
  enlarge(-1);
  e.parameters.mark_changed();
  StepRunner(e).run(batches, {.learning_rate = 1e-3});
  EXPECT_EQ(e.optimizer->last(e.stream).skip, 0) << "the next step stores over what was not finite";
}

TEST(Gradients, InEightBitsNeedANumberForTheirDrawsBeforeEachMicroBatch) {
  Engine e = engine_of(config_of(Storage::e4m3));
  begin_steps(e);
  const data::Batch batch = random_batch(1, 32, 61, 1);
  const scaling::Pass pass{.kind = scaling::Pass::Kind::train, .keep = Lifetime::micro_batch};
  const Scope micro_batch(e.stream, pass.keep);
  const models::TokenBatch tokens = upload(e.stream, batch, pass.keep);
  e.model->forward(e.stream, tokens, pass, e.loss_sums(), e.loss_factor(32));
  EXPECT_THROW(e.model->backward(e.stream, tokens, pass), ContractError);
}

// Bytes of this project's licence; the last tenth is held out.
struct Text {
  std::string bytes;
  static constexpr std::int64_t length = 64;
  Text() {
    std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/LICENSE", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  data::Batch at(std::size_t place) const {
    data::Batch b;
    b.rows = 1, b.length = length;
    for (std::size_t i = place; i < place + std::size_t(length); ++i)
      b.inputs.push_back(std::uint8_t(bytes[i])), b.targets.push_back(std::uint8_t(bytes[i + 1]));
    return b;
  }
  double held_out_loss(Engine& e) const {
    double sum = 0;
    const std::size_t begin = bytes.size() * 9 / 10;
    const std::size_t n = (bytes.size() - begin - 1) / std::size_t(length);
    for (std::size_t i = 0; i < n; ++i) sum += evaluate_batch(e, at(begin + i * std::size_t(length))).loss;
    return sum / double(n);
  }
};

double trained(const Text& text, Storage gradients, std::uint64_t seed, int twin, bool coded_ends = false) {
  EngineConfig config = config_of(gradients, "bf16");
  config.optimizer->coded_ends = coded_ends;
  config.shape.vocabulary = 257, config.sequence = Text::length;
  Engine e = engine_of(config);
  e.parameters.initialize(e.stream, seed);
  if (twin > 0) nudge(e.stream, e.parameters, seed, twin);
  StepRunner runner(e);
  constexpr int steps = 100;
  for (int s = 0; s < steps; ++s) {
    std::vector<data::Batch> batches;
    for (int m = 0; m < 4; ++m)
      batches.push_back(text.at(philox(seed, std::uint64_t(4 * s + m)).w[0] % (text.bytes.size() * 9 / 10 - Text::length - 1)));
    runner.run(batches, {.learning_rate = 3e-3 * optim::rate_factor({.warmup = 0.1}, double(s) / steps)});
  }
  return text.held_out_loss(e);
}

// The noise of a loss is that between twins, whose first weights differ in the last bit: three runs in f32 for each of three seeds, so six
// degrees of freedom. The gap of two means stays within Student's t for 0.999.
TEST(Gradients, InEightBitsOverFourMicroBatchesEndWhereF32Does) {
  constexpr double t = 5.959;
  constexpr int seeds = 3, twins = 3;
  const Text text;
  double f32 = 0, coded = 0, ends = 0, squares = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    double losses[twins], mean = 0;
    for (int twin = 0; twin < twins; ++twin)
      losses[twin] = trained(text, Storage::f32, std::uint64_t(seed), twin), mean += losses[twin] / twins;
    for (const double loss : losses) squares += (loss - mean) * (loss - mean);
    f32 += mean / seeds, coded += trained(text, Storage::e4m3, std::uint64_t(seed), 0) / seeds;
    ends += trained(text, Storage::e4m3, std::uint64_t(seed), 0, true) / seeds;
  }
  const double deviation = std::sqrt(squares / (seeds * (twins - 1)));
  const double bound = t * deviation * std::sqrt((1 + 1.0 / twins) / seeds);
  std::printf("loss with gradients in f32 %.4f, in e4m3 %.4f, of embedding and head too %.4f, bound of the gap %.4f\n", f32, coded, ends,
              bound);
  EXPECT_LT(f32, 3.0) << "of log(257) = 5.55 at the start";
  EXPECT_NEAR(coded, f32, bound);
  EXPECT_NEAR(ends, f32, bound);
}

}  // namespace
}  // namespace octet::train
