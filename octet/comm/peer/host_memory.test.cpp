#include "octet/comm/peer/host_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "octet/base/error.hpp"

namespace octet::comm {
namespace {

constexpr std::size_t bytes = 8192;

TEST(HostMemory, IsOneForTwoProcesses) {
  HostMemory made(bytes);
  EXPECT_EQ(made.data()[bytes - 1], std::byte(0));
  const HostMemory::Handle place = made.place();
  const pid_t child = fork();
  if (child == 0) {
    HostMemory opened(place, bytes);
    opened.data()[bytes - 1] = std::byte(7);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(made.data()[bytes - 1], std::byte(7));
}

TEST(HostMemory, OfAnotherMachineOrSizeOrOfNoProcessIsRefused) {
  const HostMemory made(bytes);
  HostMemory::Handle far = made.place(), closed = made.place();
  far.machine += 1, closed.descriptor = 1 << 20;
  EXPECT_THROW(HostMemory(far, bytes), IoError);
  EXPECT_THROW(HostMemory(closed, bytes), IoError);
  EXPECT_THROW(HostMemory(made.place(), 2 * bytes), IoError);
}

}  // namespace
}  // namespace octet::comm
