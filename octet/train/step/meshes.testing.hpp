#pragma once

#include <cmath>
#include <vector>

#include "octet/comm/threads/threads.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Meshes of ranks that are threads, and steps on them.

namespace octet::train::testing {

/// A mesh of ranks, and a stage of ZeRO on it.
struct Mesh {
  std::int64_t tensor = 1, context = 1, data = 1, pipeline = 1, zero = 0, expert = 1, shard = 0;

  int all() const { return int(tensor * context * data * pipeline); }
  void set(parallel::RanksConfig& c) const {
    c.tensor = tensor, c.context = context, c.data = data, c.pipeline = pipeline, c.zero = zero, c.expert = expert, c.shard = shard;
  }
  std::string text() const {
    return format("tensor {} x context {} x data {} x pipeline {}, expert {}, stage {} in groups of {}", tensor, context, data, pipeline,
                  expert, zero, shard);
  }
};

/// A mesh by the axes that a test of tensor ranks varies.
struct TensorMesh : Mesh {
  TensorMesh(std::int64_t of_tensor = 1, std::int64_t of_data = 1, std::int64_t stage = 0)
      : Mesh{.tensor = of_tensor, .data = of_data, .zero = stage} {}
};

/// All meshes of 2, 4 and 8 ranks at every stage: a pipeline has stages 0 and 1.
inline std::vector<Mesh> all_meshes(std::int64_t most_tensor, std::int64_t most_pipeline) {
  std::vector<Mesh> out;
  for (const std::int64_t n : {2, 4, 8})
    for (std::int64_t t = 1; t <= std::min(n, most_tensor); t *= 2)
      for (std::int64_t c = 1; t * c <= n; c *= 2)
        for (std::int64_t d = 1; t * c * d <= n; d *= 2) {
          const std::int64_t p = n / (t * c * d);
          for (std::int64_t zero = 0; p <= most_pipeline && zero <= (c * d == 1 ? 0 : p > 1 ? 1 : 3); ++zero)
            out.push_back({.tensor = t, .context = c, .data = d, .pipeline = p, .zero = zero});
        }
  return out;
}

/// work(engine, rank) on each rank of a mesh.
template <class Work>
void on_mesh(EngineConfig config, const Mesh& mesh, const Work& work) {
  mesh.set(config.ranks);
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    work(e, c.rank());
  });
}

struct MeshSteps {
  std::vector<float> gradients;  // of the first step
  std::vector<double> losses;    // of all
  double norm = 0;               // of the gradients of the first step
};

/// Steps on a mesh, as its first rank sees them. batches_of(step, group): the micro-batches of one of the mesh.data groups of ranks that
/// have the same sequences. begin(engine): its runner, with weights.
template <class Batches, class Begin = StepRunner (*)(Engine&)>
MeshSteps steps_on_mesh(EngineConfig config, const Mesh& mesh, int steps, double rate, const Batches& batches_of,
                        const Begin& begin = begin_steps) {
  mesh.set(config.ranks);
  MeshSteps out;
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 60}, [&](comm::Communicator& c) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin(e);
    for (int s = 0; s < steps; ++s)
      runner.run(batches_of(s, e.axes.sequence_group()), {.learning_rate = rate}, [&] {
        const std::vector<float> flat = s == 0 ? e.flat_gradients() : std::vector<float>();
        const Readout shown = read_out(e);
        if (c.rank() > 0) return;
        if (s == 0) out.gradients = flat, out.norm = shown.step.gradient_norm;
        out.losses.push_back(double(shown.loss));
      });
  });
  return out;
}

/// The root of the sum of squares of a - b, over that of a.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, of_a = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]), of_a += double(a[i]) * a[i];
  return std::sqrt(squares / of_a);
}

}  // namespace octet::train::testing
