#include "octet/tensor/cpu/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "octet/base/check.hpp"

namespace octet::cpu {
namespace {

std::size_t physical_bytes() { return std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE)); }

// First number of a file, or `otherwise` where there is none ("max").
std::size_t number_in(const char* path, std::size_t otherwise) {
  std::ifstream file(path);
  std::size_t n;
  return file >> n ? n : otherwise;
}

}  // namespace

Pages Pages::reserve() {
  Pages pages;
  pages.bytes_ = physical_bytes();
  void* const p = mmap(nullptr, pages.bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    const std::size_t wanted = std::exchange(pages.bytes_, 0);
    throw DeviceError(format("cannot reserve {} of address space ({}); raise the limit with `ulimit -v unlimited`",
                             bytes_text(double(wanted)), std::strerror(errno)));
  }
  madvise(p, pages.bytes_, MADV_HUGEPAGE);
  pages.data_ = static_cast<std::byte*>(p);
  return pages;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

std::size_t available_bytes() {
  std::size_t available = physical_bytes();
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  std::size_t kib;
  while (info >> key >> kib && std::getline(info, unit))
    if (key == "MemAvailable:") available = kib * 1024;
  const std::size_t none = std::numeric_limits<std::size_t>::max();
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max", none), used = number_in("/sys/fs/cgroup/memory.current", 0);
  return limit == none ? available : std::min(available, limit > used ? limit - used : 0);
}

}  // namespace octet::cpu
