#include <gtest/gtest.h>

#include <cstdio>

#include "octet/base/clock.hpp"
#include "octet/base/text.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "tests/testing/floats.hpp"

// Many ranks as threads of this process, on all axes at once: three steps, the time until the first one, and memory per rank.
// OCTET_MANY_RANKS=1 makes a campaign of 64 and 256 ranks; by default there are 16.

namespace octet::train {
namespace {

using namespace octet::train::testing;

// Pages of this process, 4 KiB each.
double resident_bytes() {
  long all = 0, resident = 0;
  std::FILE* const f = std::fopen("/proc/self/statm", "r");
  if (f == nullptr || std::fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;
  if (f != nullptr) std::fclose(f);
  return 4096.0 * double(resident);
}

struct Start {
  double communicators = 0, engine = 0, steps = 0;  // seconds until all ranks have them
  double bytes = 0;                                 // of all ranks
};

EngineConfig config_of(const Mesh& mesh) {
  EngineConfig config = small_engine("llama", "fp32");
  config.shape.layers = 4, config.shape.kv_heads = 4, config.shape.hidden = 128, config.sequence = 64;
  mesh.set(config.ranks);
  return config;
}

Start start_of(const Mesh& mesh, std::vector<double>& losses) {
  Start out;
  const EngineConfig config = config_of(mesh);
  const double before = resident_bytes(), begin = monotonic_seconds();
  comm::run_on_threads({.ranks = mesh.all(), .limit_seconds = 300}, [&](comm::Communicator& c) {
    Stream idle(Device::cpu);
    c.barrier(idle);
    if (c.rank() == 0) out.communicators = monotonic_seconds() - begin;
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
    StepRunner runner = begin_steps(e);
    c.barrier(idle);
    if (c.rank() == 0) out.engine = monotonic_seconds() - begin, out.bytes = resident_bytes() - before;
    for (int s = 0; s < 3; ++s) {
      std::vector<data::Batch> own;
      for (int i = 0; i < 16 / int(mesh.data); ++i)
        own.push_back(random_batch(1, 64, 61, 1000 + std::uint64_t(16 * s + e.axes.sequence_group() + i * int(mesh.data))));
      runner.run(own, {.learning_rate = 1e-2}, [&] {
        const Readout shown = read_out(e);
        if (c.rank() == 0) losses.push_back(double(shown.loss));
      });
    }
    c.barrier(idle);
    if (c.rank() == 0) out.steps = monotonic_seconds() - begin - out.engine;
  });
  return out;
}

bool campaign() { return std::getenv("OCTET_MANY_RANKS") != nullptr; }

TEST(ManyRanks, TrainThreeStepsOnAllAxesWithTheLossesOfOneRank) {
  std::vector<double> one;
  start_of({}, one);
  std::vector<Mesh> meshes{{.tensor = 2, .context = 2, .data = 2, .pipeline = 2, .zero = 1}};
  if (campaign())
    meshes = {{.tensor = 2, .context = 2, .data = 4, .pipeline = 4, .zero = 1},
              {.tensor = 2, .context = 2, .data = 16, .zero = 3, .shard = 8},
              {.tensor = 4, .context = 2, .data = 8, .pipeline = 4, .zero = 1},
              {.tensor = 4, .context = 4, .data = 16, .zero = 3, .shard = 8}};
  for (const Mesh& mesh : meshes) {
    std::vector<double> losses;
    const Start s = start_of(mesh, losses);
    const double ranks = mesh.all();
    std::printf("%-70s %3d ranks: communicators %.2f s, engines %.2f s, three steps %.2f s, %.2f MiB per rank\n", mesh.text().c_str(),
                mesh.all(), s.communicators, s.engine, s.steps, s.bytes / ranks / 1024 / 1024);
    ASSERT_EQ(losses.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(losses[i] / one[i], 1, 1e-5) << mesh.text() << ", " << i;
  }
}

}  // namespace
}  // namespace octet::train
