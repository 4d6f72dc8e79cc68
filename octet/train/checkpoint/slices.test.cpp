#include <gtest/gtest.h>

#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// The state of ranks that divide it, saved and restored at other numbers of ranks and stages.

namespace octet::train {
namespace {

using octet::testing::SavedState, octet::testing::Scratch;

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

void save(Engine& e, int rank, const std::string& folder) {
  if (rank > 0 && !e.divided_weights) return;
  Capture capture(e.stream, rank == 0 ? Capture::What::all : Capture::What::slices);
  e.visit_state(capture);
  const Snapshot s = capture.take();
  write_file(folder + "/" + state_file_name(rank), std::string(reinterpret_cast<const char*>(s.file.get()), s.bytes));
}

void load(Engine& e, const std::string& folder) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 8; ++rank)
    if (exists(folder + "/" + state_file_name(rank))) names.push_back(state_file_name(rank));
  const StateFiles files(folder, names);
  for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
    Restore restore(e.stream, files, mode);
    e.visit_state(restore);
    restore.finish();
  }
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

}  // namespace
}  // namespace octet::train
