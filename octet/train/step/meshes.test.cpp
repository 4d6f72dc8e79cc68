#include <gtest/gtest.h>

#include <cmath>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/floats.hpp"

// FP32 steps on meshes of every shape of 2, 4 and 8 ranks, at every stage of ZeRO, against one rank that runs all their micro-batches. By
// default these are a fourth of the meshes; OCTET_EXHAUSTIVE=1 runs all.

namespace octet::train {
namespace {

using namespace octet::train::testing;

// A part of them. Two blocks have at most two stages, and four heads at most four tensor ranks.
std::vector<Mesh> meshes() {
  std::vector<Mesh> all = all_meshes(4, 2), out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (octet::testing::exhaustive() || i % 4 == 0) out.push_back(all[i]);
  return out;
}

constexpr int micro_batches = 8;  // of a step on all ranks, of 64 tokens

struct Result {
  std::vector<float> gradients;  // of the first step
  std::vector<double> losses;
};

Result steps_on(const Mesh& mesh, int steps) {
  EngineConfig config = small_engine("llama", "fp32");
  config.shape.hidden = 128, config.sequence = 64;
  config.ranks = mesh.ranks();
  Result out;
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < steps; ++s) {
      std::vector<data::Batch> own;
      for (int i = e.axes.sequence_group(); i < micro_batches; i += int(mesh.data))
        own.push_back(random_batch(1, 64, 61, 300 + std::uint64_t(micro_batches * s + i)));
      runner.run(own, {.learning_rate = 1e-2}, [&] {
        const std::vector<float> flat = s == 0 ? e.flat_gradients() : std::vector<float>();
        const Readout shown = read_out(e);
        if (c.rank() > 0) return;
        if (s == 0) out.gradients = flat;
        out.losses.push_back(double(shown.loss));
      });
    }
  });
  return out;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, of_a = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]), of_a += double(a[i]) * a[i];
  return std::sqrt(squares / of_a);
}

TEST(Meshes, OfFp32HaveTheGradientsAndLossesOfOneRank) {
  const int steps = 3;
  const Result one = steps_on({}, steps);
  for (const Mesh& mesh : meshes()) {
    const Result many = steps_on(mesh, steps);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", " << s;
  }
}

}  // namespace
}  // namespace octet::train
