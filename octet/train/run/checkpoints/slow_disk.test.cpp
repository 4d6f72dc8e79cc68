#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "octet/base/path.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// Runs on ranks that are threads, on a disk from which a checkpoint takes longer to read than ranks wait for each other.

namespace octet::train {
namespace {

constexpr double limit = 0.8, slow = 1.3;
constexpr size_t large = 32768;  // bytes: not those of a header
std::atomic<const char*> slow_file = nullptr;

bool is_slow(int file) {
  std::error_code none;
  return slow_file != nullptr && std::filesystem::read_symlink(format("/proc/self/fd/{}", file), none).filename() == slow_file.load();
}

}  // namespace

// The linker takes this for the program's calls of the same name.
extern "C" ssize_t pread(int file, void* bytes, size_t n, off_t at) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, void*, size_t, off_t)>(::dlsym(RTLD_NEXT, "pread"));
  if (n > large && is_slow(file)) std::this_thread::sleep_for(std::chrono::duration<double>(slow));
  return next(file, bytes, n, at);
}

namespace {

struct SlowDisk : ::testing::Test, testing::Runs {
  SlowDisk() {
    config.train.steps = 2, config.train.batch = 1, config.train.accumulate = 1, config.train.eval_every = 0;
    config.checkpoint.every = 0;
  }
  ~SlowDisk() override { slow_file = nullptr; }

  // The folder of a run in which each rank has ended after the last files were there.
  std::string ended_on(int ranks, const std::string& resume = "") const {
    std::string folder;
    std::atomic<int> too_early = 0;
    comm::run_on_threads({.ranks = ranks, .limit_seconds = limit}, [&](comm::Communicator& c) {
      const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
      Trainer trainer(config, corpus, {.console = Console::Kind::quiet, .resume = resume, .ranks = &c, .ranks_here = ranks});
      const std::string name = trainer.folder();
      trainer.run();
      const CheckpointStore store(checkpoint_folder(name));
      if (store.steps().empty() || store.steps().back() != config.train.steps || !exists(name + "/weights/config.json")) ++too_early;
      if (c.rank() == 0) folder = name;
    });
    EXPECT_EQ(too_early, 0);
    return folder;
  }
};

TEST_F(SlowDisk, RanksWithoutFilesWaitForTheLastCheckpointOfTheFirstOne) {
  slow_file = "state.safetensors";
  ended_on(2);
}

TEST_F(SlowDisk, RanksResumeHoweverLongTheFilesTakeToVerify) {
  const std::string folder = ended_on(2);
  slow_file = "state.safetensors", config.train.steps = 4;
  ended_on(2, folder);
  EXPECT_EQ(CheckpointStore(checkpoint_folder(folder)).steps().back(), 4);
}

TEST_F(SlowDisk, RanksCommitTheirFilesHoweverLongTheyTakeToReadBack) {
  config.ranks.zero = 1;
  slow_file = "state-1.safetensors";
  ended_on(2);
}

TEST_F(SlowDisk, ARunThatActsWaitsForEachSaveInItsMiddle) {
  config.ranks.zero = 1, config.checkpoint.every = 1, config.recovery.mode = health::RecoveryConfig::Mode::act;
  slow_file = "state-1.safetensors";
  const std::string folder = ended_on(2);
  EXPECT_EQ(CheckpointStore(checkpoint_folder(folder)).steps(), (std::vector<std::int64_t>{1, 2}));
}

// Whose state goes through a checkpoint of step 2, while that of step 1 is written.
TEST_F(SlowDisk, AChangeOfPrecisionWaitsForTheSaveThatIsUnderWay) {
  config.recipe.recipe = "block128", config.recipe.final_recipe = "bf16", config.recipe.final_share = 0.5;
  config.model.width = 128, config.model.hidden = 256, config.ranks.zero = 1;
  config.recipe.keep_bf16 = {"layers.*.attn.out"};  // so that codes are not neighbours of the values
  config.train.steps = 4, config.checkpoint.every = 1;
  slow_file = "state-1.safetensors";
  const std::vector<std::int64_t> steps = CheckpointStore(checkpoint_folder(ended_on(2))).steps();
  EXPECT_EQ(std::vector(steps.begin(), steps.begin() + 2), (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace octet::train
