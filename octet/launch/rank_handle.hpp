#pragma once

#include <sys/types.h>

#include "octet/base/descriptor.hpp"

namespace octet::launch {

/// The process of a rank, which is no child of this one. It stays that process: its number may be another's once it has ended.
class RankHandle {
 public:
  explicit RankHandle(pid_t);
  void signal(int number) const;
  bool has_ended() const;

 private:
  Descriptor handle_;  // pidfd; not ok(): it had ended before
};

}  // namespace octet::launch
