#include "octet/launch/rank_handle.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace octet::launch {

RankHandle::RankHandle(pid_t process) : handle_(int(::syscall(SYS_pidfd_open, process, 0))) {}

void RankHandle::signal(int number) const {
  if (handle_.ok()) ::syscall(SYS_pidfd_send_signal, handle_.number(), number, nullptr, 0);
}

bool RankHandle::has_ended() const {
  pollfd ended{handle_.number(), POLLIN, 0};
  return !handle_.ok() || ::poll(&ended, 1, 0) > 0;
}

}  // namespace octet::launch
