#pragma once

#include <gtest/gtest.h>

#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// The state of one mesh on others.

namespace octet::train::testing {

/// After a step on `from`, its checkpoint is the same state on every mesh of `to`, and its exported weights are those of one rank, which
/// `from` loads again. batches_of(group): the micro-batches of a group of ranks. after(engine): behind the step.
template <class BatchesOf, class After = void (*)(Engine&)>
void expect_one_state(
    const EngineConfig& config, const Mesh& from, const std::vector<Mesh>& to, const BatchesOf& batches_of,
    const After& after = [](Engine&) {}) {
  const octet::testing::Scratch scratch;
  const auto whole_state = [&](const std::string& folder) {
    Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
    load(e, folder);
    return octet::testing::SavedState::of(e);
  };
  const auto exported = [&](const std::string& name) { return read_file(scratch.at(name + "/model.safetensors"), 1 << 24); };
  on_mesh(config, from, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    runner.run(batches_of(e.axes.sequence_group()), {.learning_rate = 1e-2});
    after(e);
    save(e, rank, scratch.at("."));
    save_weights(e, scratch.at("exported"));
  });
  const octet::testing::SavedState saved = whole_state(scratch.at("."));
  on_mesh(config, {}, [&](Engine& e, int) { load(e, scratch.at(".")), save_weights(e, scratch.at("of one")); });
  EXPECT_EQ(exported("exported"), exported("of one")) << from.text();
  for (const Mesh& mesh : to) {
    const octet::testing::Scratch again;
    on_mesh(config, mesh, [&](Engine& e, int rank) { load(e, scratch.at(".")), save(e, rank, again.at(".")); });
    EXPECT_EQ(whole_state(again.at(".")), saved) << "from " << from.text() << " to " << mesh.text();
  }
  on_mesh(config, from, [&](Engine& e, int) { load_weights(e, scratch.at("of one")), save_weights(e, scratch.at("again")); });
  EXPECT_EQ(exported("again"), exported("of one")) << from.text();
}

}  // namespace octet::train::testing
