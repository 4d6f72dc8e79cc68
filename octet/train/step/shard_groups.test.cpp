#include <gtest/gtest.h>

#include "octet/train/layout/constraints.hpp"
#include "octet/train/step/engine_layout.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "tests/testing/floats.hpp"

// Steps on ranks of which groups divide the state, and other groups have copies of it.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using parallel::Wire;

constexpr int micro_batches = 8;  // of a step on all ranks, of 64 tokens

EngineConfig config_of(const std::string& recipe) {
  EngineConfig config = small_engine("llama", recipe);
  config.shape.hidden = 128, config.sequence = 64;
  return config;
}

std::vector<data::Batch> batches_of(const Mesh& mesh, int step, int group) {
  std::vector<data::Batch> own;
  for (int i = group; i < micro_batches; i += int(mesh.data))
    own.push_back(random_batch(1, 64, 61, 300 + std::uint64_t(micro_batches * step + i)));
  return own;
}

MeshSteps steps_on(const EngineConfig& config, const Mesh& mesh, int steps) {
  return steps_on_mesh(config, mesh, steps, 1e-2, [&](int step, int group) { return batches_of(mesh, step, group); });
}

TEST(ShardGroups, OfFp32HaveTheGradientsAndLossesOfOneRank) {
  const MeshSteps one = steps_on(config_of("fp32"), {}, 2);
  for (const Mesh& mesh : {Mesh{.data = 4, .zero = 1, .shard = 2},
                           {.data = 4, .zero = 2, .shard = 2},
                           {.data = 4, .zero = 3, .shard = 2},
                           {.data = 4, .zero = 3, .shard = 1},
                           {.tensor = 2, .data = 4, .zero = 2, .shard = 2},
                           {.context = 2, .data = 4, .zero = 3, .shard = 4},
                           {.data = 4, .pipeline = 2, .zero = 1, .shard = 2}}) {
    const MeshSteps many = steps_on(config_of("fp32"), mesh, 2);
    EXPECT_LT(distance(one.gradients, many.gradients), 1e-5) << mesh.text();
    EXPECT_NEAR(many.norm / one.norm, 1, 1e-5) << mesh.text();
    for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(many.losses[s] / one.losses[s], 1, 1e-5) << mesh.text() << ", " << s;
  }
}

// Sums of groups are rounded once more, by at most a spacing of their format each time.
TEST(ShardGroups, SumGradientsInEveryStorageAndFormat) {
  const MeshSteps one = steps_on(config_of("fp32"), {}, 1);
  for (const std::int64_t zero : {1, 3})
    for (const auto& [storage, wire, most] : {std::tuple{Storage::bf16, Wire::stored, 8 * 0x1p-9},
                                              {Storage::f32, Wire::e4m3, 0.1},
                                              {Storage::e4m3, Wire::stored, 0.15},
                                              {Storage::e4m3, Wire::bf16, 0.15},
                                              {Storage::f32, Wire::e4m3_shared, 1e-5}}) {  // small tensors travel as they are
      EngineConfig config = config_of("fp32");
      config.optimizer->gradients = storage, config.comm.gradients = wire;
      const MeshSteps many = steps_on(config, {.data = 4, .zero = zero, .shard = 2}, 1);
      EXPECT_LT(distance(one.gradients, many.gradients), most) << "stage " << zero << ", " << name(storage) << " as " << to_text(wire);
    }
}

// Of N data ranks in groups of n, with P values in buckets, in FP32: a group's exchanges are those of n ranks, and copies of a part sum it
// once per step, 2 (N/n - 1) / (N/n) x 4 P / n bytes.
TEST(ShardGroups, SendTheBytesOfTheFormula) {
  for (const std::int64_t zero : {1, 2, 3}) {
    EngineConfig config = config_of("current");
    config.ranks.zero = zero, config.ranks.shard = 2;
    double copies = 0, values = 0, group = 0, alone = 0;
    const auto sent = [&](int ranks, const auto& take) {
      comm::run_on_threads({.ranks = ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
        Engine e(config, Device::cpu, machine::machine_target(Device::cpu), &c);
        StepRunner runner = begin_steps(e);
        const std::int64_t in_group = e.axes.shards().traffic().bytes, among_copies = e.axes.same_shard().traffic().bytes;
        const std::vector<data::Batch> batches{random_batch(1, 64, 61, 1), random_batch(1, 64, 61, 2)};
        runner.run(batches, {.learning_rate = 1e-2});
        if (c.rank() == 0)
          take(e, double(e.axes.shards().traffic().bytes - in_group), double(e.axes.same_shard().traffic().bytes - among_copies));
      });
    };
    sent(8, [&](Engine& e, double in_group, double among_copies) {
      group = in_group, copies = among_copies;
      for (const nn::Bucket& b : e.parameters.buckets()) values += double(b.count);
    });
    config.ranks.shard = 0;
    sent(2, [&](Engine&, double in_group, double) { alone = in_group; });
    EXPECT_EQ(copies, 2 * 3.0 / 4 * 4 * values / 2) << "stage " << zero;
    // Two ranks alone also sum losses and maxima of quantizers, which are those of all ranks.
    EXPECT_LE(group, alone) << "stage " << zero;
    EXPECT_GE(group, 0.97 * alone) << "stage " << zero;
  }
}

TEST(ShardGroups, AreRefusedByTheirKey) {
  const auto refused = [](std::int64_t zero, std::int64_t shard) {
    EngineConfig config = config_of("bf16");
    config.ranks.zero = zero, config.ranks.shard = shard, config.planned_ranks = 6;
    const Subject subject = subject_of(config, 6);
    const Layout l = layout_of(config, 6);
    return sentence(first_broken(l, subject, {LayoutConstraint::Holds::always, LayoutConstraint::Holds::here}), l, subject);
  };
  EXPECT_EQ(refused(1, 3), "");
  EXPECT_EQ(refused(1, 4), "ranks.shard = 4: data x context = 6 must be a multiple of it; the nearest number is 3");
  EXPECT_NE(refused(0, 3).find("ranks.shard = 3: ranks.zero = 0 divides no state"), std::string::npos);
}

}  // namespace
}  // namespace octet::train
