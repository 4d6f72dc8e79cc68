#include <gtest/gtest.h>

#include "octet/train/step/meshes.testing.hpp"
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

MeshSteps steps_on(const Mesh& mesh, int steps) {
  EngineConfig config = small_engine("llama", "fp32");
  config.shape.hidden = 128, config.sequence = 64;
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) {
    std::vector<data::Batch> own;
    for (int i = group; i < micro_batches; i += int(mesh.data))
      own.push_back(random_batch(1, 64, 61, 300 + std::uint64_t(micro_batches * step + i)));
    return own;
  });
}

TEST(Meshes, OfFp32HaveTheGradientsAndLossesOfOneRank) {
  const int steps = 3;
  const MeshSteps one = steps_on({}, steps);
  for (const Mesh& mesh : meshes()) {
    const MeshSteps many = steps_on(mesh, steps);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", " << s;
  }
}

}  // namespace
}  // namespace octet::train
