#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "octet/base/error.hpp"

// Shared by the fuzz targets. A target shows the bytes that libFuzzer made up to one reader. The reader may refuse them with an Error;
// anything else (a crash, a sanitizer's report, another exception, more than 10 seconds) is a defect.

namespace octet::fuzz {

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

inline constexpr std::size_t most_bytes = std::size_t(64) << 20;  // of a file that a target reads back

/// A file in memory, for readers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != ssize_t(bytes.size())) __builtin_trap();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// A new file, since truncating an old one waits for the disk.
inline void put_file(const std::string& path, std::string_view bytes) {
  ::unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class Read>
void read_or_refuse(Read read) {
  try {
    read();
  } catch (const Error& e) {
    if (e.code() == ExitCode::internal) throw;  // one of Octet's contracts was broken
  }
}

/// The result of `read` for an input that it may not refuse: text that Octet wrote itself.
template <class Read>
auto must(Read read) {
  try {
    return read();
  } catch (const Error&) {
    __builtin_trap();
  }
}

}  // namespace octet::fuzz
