#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Steps of ranks that divide each layer, each a thread with an engine of its own, against one engine with whole layers.

namespace octet::train {
namespace {

using namespace octet::train::testing;

struct Mesh {
  int tensor = 1, data = 1;
  int all() const { return tensor * data; }
};

// Two sequences of 32 tokens for each of two micro-batches in a step, divided among data ranks.
std::vector<data::Batch> batches_of(int step, int rank, int data) {
  std::vector<data::Batch> out;
  for (int i = rank; i < 2; i += data) out.push_back(random_batch(2, 32, 61, 900 + std::uint64_t(2 * step + i)));
  return out;
}

struct Result {
  std::vector<float> gradients, losses;  // of the first step; of all
  double norm = 0;                       // of the gradients of the first step
};

Result steps_on(const EngineConfig& of_one, const Mesh& mesh, int steps = 1, double rate = 1e-2) {
  EngineConfig config = of_one;
  config.ranks.tensor = mesh.tensor, config.ranks.data = mesh.data;
  Result out;
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < steps; ++s)
      runner.run(batches_of(s, e.ranks().rank(), mesh.data), {.learning_rate = rate}, [&] {
        const std::vector<float> flat = s == 0 ? e.flat_gradients() : std::vector<float>();
        const Readout shown = read_out(e);
        if (c.rank() > 0) return;
        if (s == 0) out.gradients = flat, out.norm = shown.step.gradient_norm;
        out.losses.push_back(shown.loss);
      });
  });
  return out;
}

// The largest difference of two gradients over the root mean square of the first.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, most = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    squares += double(a[i]) * a[i], most = std::max(most, std::fabs(double(a[i]) - b[i]));
  return most / std::sqrt(squares / double(a.size()));
}

EngineConfig engine_of(const std::string& family, const std::string& recipe) {
  EngineConfig config = small_engine(family, recipe);
  config.shape.hidden = 128;
  return config;
}

TEST(Tensor, Fp32HasTheGradientsAndLossesOfOneRank) {
  for (const std::string family : {"llama", "qwen2", "qwen3"}) {
    const EngineConfig config = engine_of(family, "fp32");
    const Result one = steps_on(config, {}, 5);
    for (const Mesh mesh : {Mesh{2, 1}, {4, 1}, {2, 2}, {1, 2}}) {
      const Result many = steps_on(config, mesh, 5);
      EXPECT_LT(difference(one.gradients, many.gradients), 1e-4) << family << " " << mesh.tensor << " " << mesh.data;
      EXPECT_NEAR(many.norm / one.norm, 1, 1e-5);
      for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << family << " step " << s;
    }
  }
}

}  // namespace
}  // namespace octet::train
