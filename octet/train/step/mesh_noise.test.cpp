#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/study/twin.hpp"
#include "tests/testing/floats.hpp"
#include "tests/testing/scratch.hpp"

// Steps of N ranks against those of one rank, from one checkpoint. The noise of rounding is that of twins: one rank whose first weights
// differ in their last bit. Masters are BF16, so that it is the last bit of what GEMMs of BF16 read.
// OCTET_EXHAUSTIVE=1 runs all meshes of 2, 4 and 8 ranks with a larger model, and prints every figure.

namespace octet::train {
namespace {

using namespace octet::train::testing;

std::vector<Mesh> meshes() {
  if (octet::testing::exhaustive()) return all_meshes(8, 8);
  return {{.tensor = 2, .context = 2}, {.tensor = 2, .data = 2, .zero = 3}, {.tensor = 4}};
}

// With eight blocks, heads and segments of 8 tokens, eight ranks fit on any axis: parts of 32 columns have blocks of every recipe. Copies
// of key heads have parts of their gradients, which one scale for the whole model takes to 0 more often than their sum.
EngineConfig engine_of(const std::string& recipe) {
  EngineConfig c = small_engine("llama", recipe);
  c.sequence = 64, c.document_mask = true, c.optimizer->master = Storage::bf16;
  c.shape.head_dim = 32, c.shape.hidden = 128;
  if (!octet::testing::exhaustive()) return c;
  c.shape.width = c.sequence = c.shape.max_sequence = 128, c.shape.hidden = 256, c.shape.vocabulary = 125;
  c.shape.layers = c.shape.heads = 8, c.shape.kv_heads = recipe == "global" ? 8 : 4;
  return c;
}

// Sequences of a step with masked documents, divided among groups. The losses fall, since two batches take turns.
std::vector<data::Batch> batches_of(const EngineConfig& c, int step, int group, int groups) {
  const int sequences = octet::testing::exhaustive() ? 8 : 4;
  std::vector<data::Batch> out;
  for (int i = group; i < sequences; i += groups) {
    const auto seed = std::uint64_t(sequences * (step % 2) + i);
    data::Batch b = random_batch(1, c.sequence, c.shape.vocabulary, 700 + seed);
    b.document_mask = true, b.document_starts = ops::random_document_starts(c.sequence, c.sequence, 11, seed);
    for (std::size_t t = 0; t + 1 < std::size_t(c.sequence); ++t)
      if (b.document_starts[t + 1] == std::int32_t(t + 1)) b.targets[t] = -1;
    out.push_back(std::move(b));
  }
  return out;
}

constexpr int steps_before = 3, steps = 6;
constexpr double rate = 3e-3;

MeshSteps steps_on(const EngineConfig& config, const std::string& checkpoint, const Mesh& mesh, int twin = 0) {
  const auto batches = [&](int step, int group) { return batches_of(config, steps_before + step, group, mesh.data); };
  return steps_on_mesh(config, mesh, steps, rate, batches, [&](Engine& e) {
    load(e, checkpoint);
    if (twin > 0) nudge(e.stream, e.parameters, 7, twin);
    return StepRunner(e);
  });
}

template <class T>
double distance(std::span<const T> a, std::span<const T> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
  return std::sqrt(squares);
}

// One rank from a checkpoint of its own.
struct One {
  octet::testing::Scratch scratch;
  std::vector<std::pair<std::string, std::size_t>> tensors;  // in the order of gradients
  MeshSteps steps;

  explicit One(const EngineConfig& config) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < steps_before; ++s) runner.run(batches_of(config, s, 0, 1), {.learning_rate = rate});
    save(e, 0, scratch.at("."));
    for (const Parameter* p : e.parameters.list()) tensors.emplace_back(p->path, std::size_t(p->shape.count()));
    steps = steps_on(config, scratch.at("."), {});
  }
  // Of all gradients, then of each tensor's.
  std::vector<double> distances(const MeshSteps& s) const {
    const std::span<const float> a(steps.gradients), b(s.gradients);
    std::vector<double> out{distance(a, b)};
    std::size_t at = 0;
    for (const auto& [path, count] : tensors) out.push_back(distance(a.subspan(at, count), b.subspan(at, count))), at += count;
    return out;
  }
  double distance_of_losses(const MeshSteps& s) const { return distance<double>(steps.losses, s.losses); }
};

constexpr std::size_t twins = 6;
using OfTwins = std::array<double, twins>;

// Of one more draw from the distribution of `x`: the mean and Student's t for 0.999 with 5 degrees of freedom. Source: Whitmore 1986,
// "Prediction limits for a univariate normal observation".
double limit_of(const OfTwins& x) {
  constexpr double t = 6.869, n = twins;
  double mean = 0, squares = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) squares += (v - mean) * (v - mean);
  return mean + t * std::sqrt(squares / (n - 1) * (1 + 1 / n));
}

// The band of noise of reports.
double band_of(const OfTwins& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return 2 * std::sqrt(squares / double(twins));
}

class OnMeshes : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Recipes, OnMeshes, ::testing::Values("bf16", "current", "delayed", "rowwise", "block128", "mxfp8", "global"));

TEST_P(OnMeshes, AStepAndATrainingDifferFromOneRankAsItsTwinsDo) {
  const EngineConfig config = engine_of(GetParam());
  const One one(config);
  std::vector<OfTwins> gradients(one.tensors.size() + 1);
  OfTwins losses{};
  for (std::size_t t = 0; t < twins; ++t) {
    const MeshSteps twin = steps_on(config, one.scratch.at("."), {}, int(t) + 1);
    const std::vector<double> distances = one.distances(twin);
    for (std::size_t i = 0; i < distances.size(); ++i) gradients[i][t] = distances[i];
    losses[t] = one.distance_of_losses(twin);
  }
  EXPECT_LT(one.steps.losses.back(), one.steps.losses.front()) << "it learns";
  for (const Mesh& mesh : meshes()) {
    const MeshSteps many = steps_on(config, one.scratch.at("."), mesh);
    const std::vector<double> distances = one.distances(many);
    const double of_all = distances[0] / limit_of(gradients[0]), of_losses = one.distance_of_losses(many) / band_of(losses);
    double worst = 0;
    std::size_t which = 0;
    for (std::size_t i = 1; i < distances.size(); ++i)
      if (const double share = distances[i] / band_of(gradients[i]); share > worst) worst = share, which = i - 1;
    EXPECT_LE(of_all, 1) << mesh.text();
    EXPECT_LE(worst, 1) << mesh.text() << ", " << one.tensors[which].first;
    EXPECT_LE(of_losses, 1) << mesh.text();
    if (octet::testing::exhaustive())
      std::printf("%-9s %s: gradients %.2f of the limit, %s %.2f, losses %.2f\n", GetParam().c_str(), mesh.text().c_str(), of_all,
                  one.tensors[which].first.c_str(), worst, of_losses);
  }
}

}  // namespace
}  // namespace octet::train
