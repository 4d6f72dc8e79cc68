#pragma once

#include <cstddef>
#include <cstdint>

#include "octet/base/descriptor.hpp"

namespace octet::comm {

/// Zeroed memory of the host that processes of one machine share. It has no name in a file system, so a killed process leaves nothing.
class HostMemory {
 public:
  /// How another process of the machine finds it.
  struct Handle {
    std::uint64_t machine = 0;  // differs between machines, boots and containers
    std::int32_t process = 0, descriptor = -1;
  };

  /// Whole pages. Throws IoError when the system refuses.
  explicit HostMemory(std::size_t bytes);
  /// That of another process, or of this one. Throws IoError when it is on another machine, has ended, or is another user's.
  HostMemory(const Handle&, std::size_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Of memory that this process has made.
  Handle place() const;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void map();

  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

}  // namespace octet::comm
