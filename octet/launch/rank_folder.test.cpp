#include "octet/launch/rank_folder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/testing/scratch.hpp"

namespace octet::launch {
namespace {

// Each of several launchers looks for folders that killed ones left, while the others make theirs.
TEST(TemporaryFolder, IsNotRemovedByALauncherThatStartsAtTheSameTime) {
  const testing::Scratch scratch;
  std::atomic<int> missing = 0;
  std::vector<std::jthread> launchers;
  for (int i = 0; i < 4; ++i)
    launchers.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        const TemporaryFolder folder(scratch.at("."));
        std::this_thread::yield();
        if (!std::filesystem::exists(folder.path() + "/.lock")) ++missing;
      }
    });
  launchers.clear();
  EXPECT_EQ(missing, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.at(".")));
}

}  // namespace
}  // namespace octet::launch
