#include <gtest/gtest.h>

#include <algorithm>

#include "octet/config/read.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Levels of storage and their checkpoints.

namespace octet::train {
namespace {

using optim::Level;
using testing::Runs;

class EveryLevel : public ::testing::TestWithParam<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, EveryLevel, ::testing::Values(Level::O0, Level::O1, Level::O2, Level::O3),
                         [](const auto& info) { return to_text(info.param); });

TEST_P(EveryLevel, ResumesBitForBitAndWithoutAConversion) {
  Runs runs("current");
  runs.config.optim.level = GetParam();
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  std::filesystem::remove_all(CheckpointStore(checkpoint_folder(cut)).path(9));
  runs.train(cut);
  testing::expect_same_run(whole, cut, 9);
  const std::vector<std::string> events = octet::testing::untimed_events(cut);
  EXPECT_EQ(std::count_if(events.begin(), events.end(), testing::is_incident), 0);
}

// The first steps' losses of one level, and of others from its checkpoint.
TEST_P(EveryLevel, ResumesAtEveryOtherLevelWithAnEventThatTellsWhatWasConverted) {
  Runs runs("current");
  runs.config.optim.level = GetParam();
  runs.config.train.steps = 5, runs.config.checkpoint.every = 5;
  const std::string begun = runs.train().folder;
  for (const Level level : {Level::O0, Level::O1, Level::O2, Level::O3}) {
    if (level == GetParam()) continue;
    runs.config.optim.level = level, runs.config.train.steps = 7;
    const std::string folder = runs.copy_of(begun, "to-" + to_text(level));
    EXPECT_EQ(runs.train(folder).end.step, 7);
    const telemetry::RunRecord run = telemetry::read_run(folder);
    const auto states = [](Level l) {
      optim::StateStorage s = optim::storage_of(l);
      s.gradients = Storage::f32;  // not part of a checkpoint
      return s;
    };
    const bool converts = !(states(level) == states(GetParam()));
    ASSERT_EQ(run.incidents.size(), converts ? 1u : 0u) << to_text(level);
    if (converts) {
      EXPECT_EQ(run.incidents[0].kind, "storage");
      EXPECT_NE(run.incidents[0].text.find("the checkpoint of step 5 stores values otherwise than this run; converted"), std::string::npos)
          << run.incidents[0].text;
    }
  }
}

// The state of one engine as the bytes of a checkpoint, read into another.
StateFiles saved(Engine& e, const octet::testing::Scratch& scratch) {
  Capture capture(e.stream);
  e.visit_state(capture);
  const Snapshot snapshot = capture.take();
  write_file(scratch.at(state_file_name(0)), std::string(reinterpret_cast<const char*>(snapshot.file.get()), snapshot.bytes));
  return {scratch.at("."), std::vector{state_file_name(0)}};
}

TEST(Levels, ConvertedValuesAreTheNearestOnesOfTheNewStorage) {
  const auto config_of = [](Level level) {
    EngineConfig c = testing::small_engine("llama", "current");
    c.optimizer->level = level;
    return c;
  };
  for (const Level from : {Level::O0, Level::O3})
    for (const Level to : {Level::O0, Level::O2, Level::O3}) {
      const octet::testing::Scratch scratch;
      Engine a(config_of(from), Device::cpu, {}), b(config_of(to), Device::cpu, {}), c(config_of(to), Device::cpu, {});
      testing::train_steps(a, 3);
      const StateFiles file = saved(a, scratch);
      Restore restore(b.stream, file, Restore::Mode::write);
      b.visit_state(restore);
      restore.finish();
      EXPECT_EQ(restore.conversions().empty(),
                optim::storage_of(from).m == optim::storage_of(to).m && optim::storage_of(from).master == optim::storage_of(to).master);
      for (std::size_t i = 0; i < c.parameters.list().size(); ++i) {
        std::vector<float> values(std::size_t(c.parameters.list()[i]->shape.count()), 0.0f), got = values, wanted = values;
        nn::get_values(a.stream, a.parameters.list()[i]->value, values.data());
        nn::set_values(c.stream, c.parameters.list()[i]->value, values.data());
        nn::get_values(c.stream, c.parameters.list()[i]->value, wanted.data());
        nn::get_values(b.stream, b.parameters.list()[i]->value, got.data());
        ASSERT_EQ(got, wanted) << c.parameters.list()[i]->path << " from " << to_text(from) << " to " << to_text(to);
      }
    }
}

TEST(Levels, ConfigurationsOfEarlierVersionsAreRead) {
  RunConfig c;
  config::read_toml("[optim]\nmaster = \"bf16\"\ngradients = \"f32\"\nmoments = \"bf16\"\n", "config.toml", c, config::Written::by_program);
  EXPECT_EQ(c.optim.storage(), (optim::StateStorage{.master = Storage::bf16, .m = Storage::bf16, .v = Storage::bf16}));
  EXPECT_THROW(config::read_toml("[optim]\nmoments = \"bf16\"\n", "run.toml", c), ConfigError);
}

}  // namespace
}  // namespace octet::train
