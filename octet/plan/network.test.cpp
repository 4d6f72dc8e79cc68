#include "octet/plan/network.hpp"

#include <gtest/gtest.h>

#include "octet/plan/model_file.hpp"
#include "octet/plan/search.hpp"

// Rates and times computed by hand, for nodes of 8 GPUs whose cards send 50 GB/s.

namespace octet::plan {
namespace {

machine::MachineConstants cluster(const machine::Fabric& fabric = {}) {
  machine::MachineConstants m;
  m.devices_per_node = 8, m.link_gbs = 400, m.network_gbs = 50, m.fabric = fabric;
  return m;
}

// GB/s.
double ring(const machine::MachineConstants& m, Group g) { return Network(m).ring(g) / 1e9; }
double stages(const machine::MachineConstants& m, Group g) { return Network(m).stages(g) / 1e9; }
double exchange(const machine::MachineConstants& m, Group g, bool relayed = false) { return Network(m).exchange(g, relayed) / 1e9; }

TEST(Network, WithoutOversubscriptionMembersOnANodeShareItsCards) {
  for (const bool rails : {false, true}) {
    const auto m = cluster({.rails = rails, .nodes_per_leaf = 4});
    EXPECT_EQ(ring(m, {1, 8}), 400) << "within a node";
    EXPECT_EQ(ring(m, {1, 4}), 400);
    EXPECT_EQ(ring(m, {4, 8}), 100);
    EXPECT_EQ(ring(m, {8, 4}), 50);
    EXPECT_EQ(ring(m, {16, 4}), 50);
    EXPECT_EQ(ring(m, {3, 8}), 100);
    EXPECT_EQ(stages(m, {2, 16}), 200) << "three of four hops are within a node";
    EXPECT_EQ(exchange(m, {1, 64}), 50);
  }
}

TEST(Network, OfLeafSwitchesIsSlowWhereNeighboursAreOnOthers) {
  const auto m = cluster({.nodes_per_leaf = 4, .oversubscription = 3});
  EXPECT_EQ(ring(m, {8, 4}), 50) << "4 nodes are on one leaf";
  EXPECT_EQ(ring(m, {8, 16}), 50) << "one card of 4 sends over the spine, which passes on a third";
  EXPECT_DOUBLE_EQ(ring(m, {16, 8}), 50 / 1.5) << "every second node: one of 2";
  EXPECT_DOUBLE_EQ(ring(m, {32, 4}), 50 / 3.0) << "every fourth node: each of them";
  EXPECT_DOUBLE_EQ(ring(m, {4, 64}), 100) << "two members per node, one node of 4 sends over the spine";
  EXPECT_DOUBLE_EQ(stages(m, {16, 8}), 50 / 1.25) << "every second hop takes 1.5 times as long";
  EXPECT_DOUBLE_EQ(stages(m, {32, 4}), 50 / 3.0);
  EXPECT_DOUBLE_EQ(exchange(m, {1, 64}), 50 / (3 * 4.0 / 7)) << "4 of 7 other nodes are on the other leaf";
  EXPECT_EQ(exchange(m, {1, 32}), 50);
  const auto not_known = cluster({.oversubscription = 3});
  EXPECT_DOUBLE_EQ(ring(not_known, {8, 4}), 50 / 3.0);
  EXPECT_EQ(ring(not_known, {1, 8}), 400);
}

TEST(Network, OfRailsIsSlowBetweenDifferentPlaces) {
  const auto all = cluster({.rails = true, .oversubscription = 3});  // a leaf per rail for all nodes
  EXPECT_EQ(ring(all, {8, 64}), 50);
  EXPECT_EQ(ring(all, {4, 128}), 100) << "members 1 and 5 of each node";
  EXPECT_DOUBLE_EQ(ring(all, {3, 8}), 100 / 3.0) << "members of nodes have different places";
  EXPECT_EQ(stages(all, {8, 16}), 50);
  EXPECT_DOUBLE_EQ(stages(all, {2, 16}), 200 / 3.0) << "the last 2 GPUs of a node send to the first 2 of the next";
  EXPECT_DOUBLE_EQ(exchange(all, {1, 64}), 50 / (3 * 7.0 / 8)) << "one of 8 rails is the own one";
  EXPECT_EQ(exchange(all, {1, 64}, true), 50) << "relayed within nodes";
  const auto m = cluster({.rails = true, .nodes_per_leaf = 4, .oversubscription = 3});
  EXPECT_DOUBLE_EQ(ring(m, {16, 8}), 50 / 1.5);
  EXPECT_DOUBLE_EQ(exchange(m, {1, 64}), 50 / (3 * (1 - 3.0 / 7 / 8)));
  EXPECT_DOUBLE_EQ(exchange(m, {1, 64}, true), 50 / (3 * 4.0 / 7));
  EXPECT_DOUBLE_EQ(exchange(cluster({.devices_per_card = 4, .rails = true, .oversubscription = 3}), {1, 64}), 50 / 1.5) << "2 cards";
  const auto one_card = cluster({.devices_per_card = 8, .rails = true, .oversubscription = 3});
  EXPECT_EQ(exchange(one_card, {1, 64}), 50);
  EXPECT_EQ(stages(one_card, {2, 16}), 200);
}

TEST(Network, OfARunDecidesTheTimesOfItsTransfers) {
  const PlannedModel model = model_named("llama-3-70b");
  Job job{.sequence = 8192, .sequences = 512, .gpus = 128, .memory = 80e9, .machine = cluster()};
  job.machine.gemm_tflops = job.machine.head_tflops = job.machine.attention_tflops = job.machine.memory_gbs = 1e9;  // nothing hides
  job.machine.link_gbs = 1e9, job.machine.hop_microseconds = 0;
  const Software s = octet_software(optim::storage_of(optim::Level::O0), 1, true);
  const Layout l{.tensor = 8, .pipeline = 4, .data = 4, .zero = 1, .eight_bit = true};  // data: neighbouring nodes; stages: every fourth
  const auto time = [&](const machine::Fabric& f) {
    job.machine.fabric = f;
    return step_time(model, l, job, s);
  };
  const double border = 2.0 * 8192 * 8192 / 8, data = volume(model, l, job, s).data;
  EXPECT_NEAR(time({}).transfers, 6 * border / 50e9, 1e-9);
  EXPECT_NEAR(time({}).data, data / 50e9, 1e-3 * data / 50e9);
  const machine::Fabric leaves{.nodes_per_leaf = 4, .oversubscription = 2};
  EXPECT_NEAR(time(leaves).transfers, 6 * border / 25e9, 1e-9) << "all stages send over the spine";
  EXPECT_NEAR(time(leaves).data, data / 50e9, 1e-3 * data / 50e9) << "a data group is on one leaf";
  const machine::Fabric single{.nodes_per_leaf = 1, .oversubscription = 2};
  EXPECT_NEAR(time(single).data, data / 25e9, 1e-3 * data / 25e9);
  EXPECT_NEAR(time({.rails = true, .oversubscription = 2}).total(), time({}).total(), 1e-9) << "both stay on a rail";
}

TEST(Network, OfExpertsIsSlowAcrossRailsUnlessRowsAreRelayed) {
  const PlannedModel model = model_named("deepseek-v3");
  Job job{.sequence = 4096, .sequences = 1024, .gpus = 64, .memory = 80e9, .machine = cluster()};
  job.machine.link_gbs = 1e6;  // bytes between nodes decide
  Software s = octet_software(optim::storage_of(optim::Level::O0), 1, true);
  s.row_per_choice = true;
  const Layout l{.data = 64, .experts = 64, .zero = 1, .eight_bit = true};
  const double outside = volume(model, l, job, s).experts * 56 / 63;  // 7 of 63 others are on the same node
  const auto seconds = [&](const machine::Fabric& f) {
    job.machine.fabric = f;
    return step_time(model, l, job, s).experts;
  };
  EXPECT_NEAR(seconds({}), outside / 50e9, 1e-9 * outside / 50e9);
  EXPECT_NEAR(seconds({.rails = true, .oversubscription = 2}), outside / 50e9 * 2 * 7 / 8, 1e-9 * outside / 50e9);
  s.row_per_choice = false, s.once_per_node = true;
  EXPECT_EQ(seconds({.rails = true, .oversubscription = 2}), seconds({}));
}

// Per layer and micro-batch two sums of two numbers in FP32 per token, of which a rank of n sends 2 (n - 1) / n. No product hides them.
TEST(Network, OfTensorRanksHasTheSumsOfNormsThatReadAllHeads) {
  const PlannedModel model = model_named("olmo2-7b");
  PlannedModel without = model;
  without.norms_of_all_heads = false;
  const Job job{.sequence = 4096, .sequences = 64, .gpus = 8, .memory = 80e9, .machine = cluster()};
  const Software s = octet_software(optim::storage_of(optim::Level::O0), 1, false);
  for (const auto& [recomputed, sums] : {std::pair(Recomputed::none, 2), {Recomputed::block, 3}}) {
    const Layout l{.tensor = 8, .micro_batch = 2, .recomputed = recomputed};
    const double each = 2 * 7.0 / 8 * 2 * 4 * (2 * 4096), of_step = 32.0 * 32 * sums;  // layers x micro-batches
    EXPECT_NEAR(volume(model, l, job, s).tensor - volume(without, l, job, s).tensor, of_step * each, 1);
    const double seconds = of_step * (each / 400e9 + 2 * 7 * job.machine.hop_microseconds / 1e6);
    EXPECT_NEAR(step_time(model, l, job, s).tensor - step_time(without, l, job, s).tensor, seconds, 1e-9);
  }
}

// Weights that stage 3 gathers in every micro-batch stay on the leaf switches of 4 nodes; sums of gradients cross the spine once.
TEST(Network, OfASlowSpineIsSparedByGroupsOfALeaf) {
  Question q{.model = model_named("llama-3-70b"),
             .program = [](const Layout& l) { return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit); }};
  q.job = {.sequence = 4096, .sequences = 512, .gpus = 128, .memory = 80e9, .machine = cluster()};
  const auto seconds = [&](std::int64_t shard) {
    const Layout l{.data = 128, .zero = 3, .shard = shard};
    return step_time(q.model, l, q.job, q.program(l)).data;
  };
  const auto layouts = [&] {
    FormulaMemory memory(q.model, q.job, q.program);
    return search(q, memory).valid;
  };
  EXPECT_LT(seconds(0), seconds(32));
  const std::int64_t few = layouts();
  q.job.machine.fabric = {.nodes_per_leaf = 4, .oversubscription = 128};
  EXPECT_LT(seconds(32), 0.5 * seconds(0));
  EXPECT_GT(layouts(), few) << "the search tries them";
}

}  // namespace
}  // namespace octet::plan
