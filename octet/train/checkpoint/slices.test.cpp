#include <gtest/gtest.h>

#include "octet/io/safetensors_writer.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// The state of ranks that divide it, saved and restored at other numbers of ranks and stages.

namespace octet::train {
namespace {

using octet::testing::SavedState, octet::testing::Scratch;
using testing::load, testing::save;

struct Layout {
  int ranks;
  std::int64_t zero;
};

EngineConfig config_of(const Layout& layout, optim::Level level) {
  EngineConfig config = testing::small_engine("llama", "delayed");
  config.precision.options.history = 4, config.optimizer->level = level, config.ranks.zero = layout.zero;
  return config;
}

template <class Work>
void on_ranks(const Layout& layout, optim::Level level, const Work& work) {
  comm::run_on_threads({.ranks = layout.ranks, .limit_seconds = 30}, [&](comm::Communicator& c) {
    Engine e(config_of(layout, level), Device::cpu, machine::machine_target(Device::cpu), &c);
    work(e, c.rank());
  });
}

// As one rank has it.
SavedState whole_state(const std::string& folder, optim::Level level) {
  Engine e(config_of({1, 0}, level), Device::cpu, machine::machine_target(Device::cpu));
  load(e, folder);
  return SavedState::of(e);
}

class SavedOn : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Slices, SavedOn,
                         ::testing::Values(Layout{1, 0}, Layout{3, 0}, Layout{2, 1}, Layout{3, 1}, Layout{8, 1}, Layout{4, 2},
                                           Layout{3, 3}),
                         [](const auto& info) { return format("{}RanksStage{}", info.param.ranks, info.param.zero); });

TEST_P(SavedOn, IsTheSameStateOnEveryOtherNumberOfRanksAndStage) {
  for (const optim::Level level : {optim::Level::O0, optim::Level::O3}) {
    const Scratch scratch;
    on_ranks(GetParam(), level, [&](Engine& e, int rank) {
      testing::train_steps(e, 2);
      save(e, rank, scratch.at("."));
    });
    const SavedState saved = whole_state(scratch.at("."), level);
    for (const Layout to : {Layout{2, 0}, Layout{2, 1}, Layout{4, 1}, Layout{8, 1}, Layout{3, 2}, Layout{2, 3}}) {
      const Scratch again;
      on_ranks(to, level, [&](Engine& e, int rank) {
        load(e, scratch.at("."));
        save(e, rank, again.at("."));
      });
      EXPECT_EQ(whole_state(again.at("."), level), saved) << to.ranks << " ranks, stage " << to.zero << ", level " << int(level);
    }
  }
}

TEST(Slices, OfWhichOneIsMissingAreRefused) {
  const Scratch scratch;
  on_ranks({3, 1}, optim::Level::O0, [&](Engine& e, int rank) {
    testing::begin_steps(e);
    if (rank != 1) save(e, rank, scratch.at("."));
  });
  Engine e(config_of({1, 0}, optim::Level::O0), Device::cpu, machine::machine_target(Device::cpu));
  EXPECT_THROW(load(e, scratch.at(".")), DataError);
}

TEST(Slices, ThatDoNotCoverTheirVariableAreRefused) {
  const std::vector<float> values(12, 1.0f);
  const auto variable = [&](const std::vector<std::pair<std::string, std::int64_t>>& slices) {
    const Scratch scratch;
    std::vector<io::TensorSpec> tensors;
    for (const auto& [name, count] : slices) tensors.push_back({name, io::StoredDType::f32, {count}});
    io::SafetensorsWriter file(scratch.at(state_file_name(0)), tensors);
    for (const auto& [name, count] : slices) file.append(name, std::as_bytes(std::span(values).first(std::size_t(count))));
    file.commit();
    return StateFiles(scratch.at("."), {state_file_name(0)}).variable("x")->runs.size();
  };
  EXPECT_EQ(variable({{"x#0", 4}, {"x#4", 8}}), 2u);
  EXPECT_EQ(variable({{"x#0:2:6", 4}, {"x#2:4:6", 8}}), 4u) << "columns of two rows";
  EXPECT_THROW(variable({{"x#0", 4}, {"x#5", 8}}), DataError) << "a gap";
  EXPECT_THROW(variable({{"x#0", 4}, {"x#3", 8}}), DataError) << "an overlap";
  EXPECT_THROW(variable({{"x#0:2:6", 4}, {"x#2:4:7", 8}}), DataError) << "other columns";
  EXPECT_THROW(variable({{"x#0:1:9007199254740992", 12}}), DataError) << "places beyond any variable";
}

TEST(Slices, AreConvertedToAnotherLevel) {
  const Scratch scratch;
  on_ranks({3, 1}, optim::Level::O0, [&](Engine& e, int rank) {
    testing::train_steps(e, 2);
    save(e, rank, scratch.at("."));
  });
  const SavedState converted = whole_state(scratch.at("."), optim::Level::O3);
  const Scratch again;
  on_ranks({2, 1}, optim::Level::O3, [&](Engine& e, int rank) {
    load(e, scratch.at("."));
    save(e, rank, again.at("."));
  });
  EXPECT_EQ(whole_state(again.at("."), optim::Level::O3), converted);
}

std::string exported(Engine& e, const std::string& folder) {
  save_weights(e, folder);
  return read_file(folder + "/model.safetensors", 1 << 24);
}

// Of masters in FP16, too, whose scale per tensor is that of all ranks.
TEST(Slices, AreExportedAndLoadedAsTheMastersOfOneRank) {
  for (const Layout layout : {Layout{3, 1}, {2, 2}, {3, 3}}) {
    const Scratch scratch;
    on_ranks(layout, optim::Level::O3, [&](Engine& e, int rank) {
      testing::train_steps(e, 2);
      save(e, rank, scratch.at("."));
      save_weights(e, scratch.at("exported"));
    });
    Engine one(config_of({1, 0}, optim::Level::O3), Device::cpu, machine::machine_target(Device::cpu));
    load(one, scratch.at("."));
    const std::string wanted = exported(one, scratch.at("one"));
    EXPECT_EQ(read_file(scratch.at("exported/model.safetensors"), 1 << 24), wanted) << layout.ranks << " ranks, stage " << layout.zero;
    on_ranks(layout, optim::Level::O0, [&](Engine& e, int rank) {
      load_weights(e, scratch.at("one"));
      const StepRunner quantized(e);
      save_weights(e, scratch.at("again"));
      if (rank == 0) {
        EXPECT_EQ(read_file(scratch.at("again/model.safetensors"), 1 << 24), wanted) << layout.ranks << " ranks, stage " << layout.zero;
      }
    });
  }
}

}  // namespace
}  // namespace octet::train
