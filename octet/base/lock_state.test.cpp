#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "octet/base/descriptor.hpp"
#include "octet/base/lock_state.hpp"
#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

TEST(LockState, TellsAHeldLockFromAFreeOneWithoutTakingIt) {
  const testing::Scratch scratch;
  const std::string path = scratch.write("lock", "1");
  EXPECT_EQ(lock_state(scratch.at("none")), LockState::missing);
  EXPECT_EQ(lock_state(path), LockState::free);
  {
    const Descriptor holder(path, O_RDWR);
    ASSERT_EQ(::flock(holder.number(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(lock_state(path), LockState::held);
    EXPECT_EQ(lock_state(scratch.write("other", "1")), LockState::free);
  }
  EXPECT_EQ(lock_state(path), LockState::free);
}

}  // namespace
}  // namespace octet
