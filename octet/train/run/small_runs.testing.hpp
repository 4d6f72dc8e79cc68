#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/io/safetensors_file.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/trainer.hpp"
#include "tests/testing/run_events.hpp"
#include "tests/testing/scratch.hpp"

// Whole runs of a small model, and comparisons of two of them.

namespace octet::train::testing {

/// Runs of a model so small that a step takes milliseconds, in a folder of their own.
struct Runs {
  octet::testing::Scratch scratch;
  RunConfig config;

  explicit Runs(const std::string& recipe = "bf16") {
    log::set_quiet(true);
    config.recipe.recipe = recipe, config.recipe.options.history = 4;
    config.model.layers = 1, config.model.width = 64, config.model.heads = 4, config.model.kv_heads = 2, config.model.hidden = 96;
    config.data.path = data::make_dataset(scratch, data::some_texts(40, 400));
    config.data.sequence_length = 32, config.data.eval_fraction = 0.25;
    config.train.steps = 9, config.train.batch = 2, config.train.accumulate = 2, config.train.eval_every = 3, config.train.health_every = 4;
    config.checkpoint.every = 5, config.checkpoint.keep = 10;
    config.output = scratch.at("runs");
  }
  ~Runs() { log::set_quiet(false); }

  Outcome train(const std::string& resume = "") const {
    const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    return Trainer(config, corpus, {.console = Console::Kind::quiet, .resume = resume}).run();
  }
  /// The same on ranks that are threads; the outcome of rank 0. `opened` sees each rank's trainer before it trains.
  template <class Opened>
  Outcome train_on(int ranks, const std::string& resume, const Opened& opened) const {
    Outcome first;
    comm::run_on_threads({.ranks = ranks, .limit_seconds = 60}, [&](comm::Communicator& c) {
      const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
      Trainer trainer(config, corpus, {.console = Console::Kind::quiet, .resume = resume, .ranks = &c, .ranks_here = ranks});
      opened(c.rank(), trainer);
      Outcome outcome = trainer.run();
      if (c.rank() == 0) first = std::move(outcome);
    });
    return first;
  }
  Outcome train_on(int ranks, const std::string& resume = "") const {
    return train_on(ranks, resume, [](int, Trainer&) {});
  }
  std::string copy_of(const std::string& run, const std::string& name) const {
    std::filesystem::copy(run, scratch.at(name), std::filesystem::copy_options::recursive);
    return scratch.at(name);
  }
};

inline bool is_time(std::string_view name) {
  return name == "run.train_seconds" || name == "run.elapsed" || name.starts_with("run.rates.") || name.starts_with("alerts.machine.") ||
         name == "metrics.bytes";
}

/// Every bit of two checkpoints but what tells the time: of the files of all ranks.
inline void expect_same_state(const std::string& a, const std::string& b) {
  const std::vector<Manifest::File> files = read_manifest(a).files, others = read_manifest(b).files;
  ASSERT_EQ(files.size(), others.size());
  for (std::size_t f = 0; f < files.size(); ++f) {
    ASSERT_EQ(files[f].name, others[f].name);
    const auto left = io::SafetensorsFile::open(a + "/" + files[f].name), right = io::SafetensorsFile::open(b + "/" + files[f].name);
    ASSERT_EQ(left.tensors().size(), right.tensors().size()) << files[f].name;
    for (const io::TensorView& t : left.tensors()) {
      const auto other = right.find(t.name);
      ASSERT_TRUE(other) << t.name;
      if (is_time(t.name)) continue;
      EXPECT_TRUE(t.bytes.size() == other->bytes.size() && std::equal(t.bytes.begin(), t.bytes.end(), other->bytes.begin()))
          << files[f].name << ": " << t.name;
    }
  }
}

inline bool is_incident(const std::string& line) { return octet::testing::has(line, "\"event\":\"incident\""); }

inline std::vector<std::string> without_incidents(const std::string& run) {
  std::vector<std::string> events = octet::testing::untimed_events(run);
  std::erase_if(events, is_incident);
  return events;
}

inline void expect_same_run(const std::string& a, const std::string& b, std::int64_t step) {
  expect_same_state(CheckpointStore(checkpoint_folder(a)).path(step), CheckpointStore(checkpoint_folder(b)).path(step));
  EXPECT_EQ(read_file(a + "/weights/model.safetensors", 1 << 24), read_file(b + "/weights/model.safetensors", 1 << 24));
  EXPECT_EQ(without_incidents(a), without_incidents(b));
}

}  // namespace octet::train::testing
