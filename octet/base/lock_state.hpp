#pragma once

#include <cstdint>
#include <string>

namespace octet {

/// Whether a process holds the advisory lock of a file.
enum class LockState : std::uint8_t {
  missing,  // there is no such file
  free,     // no process of this machine holds it
  held,
  unknown,  // the system does not say: no /proc/locks, or a file of another machine
};

/// Reads it without taking the lock, even for a moment, so that no process that takes it is refused: from /proc/locks, where a lock is
/// known by device and inode, or by inode and the process number that the file contains.
LockState lock_state(const std::string& path);

}  // namespace octet
