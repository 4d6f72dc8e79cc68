#include "octet/comm/peer/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include "octet/base/check.hpp"

namespace octet::comm {
namespace {

constexpr const char* name = "octet ranks";

// Process numbers of two containers are not each other's.
std::uint64_t this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat processes {};
  if (stat("/proc/self/ns/pid", &processes) != 0) processes.st_ino = 0;
  return std::hash<std::string>()(format("{} {}", boot, std::uint64_t(processes.st_ino)));
}

std::string path_of(const HostMemory::Handle& p) { return format("/proc/{}/fd/{}", p.process, p.descriptor); }

}  // namespace

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
  file_ = Descriptor(memfd_create(name, MFD_CLOEXEC));
  if (!file_.ok() || ftruncate(file_.number(), off_t(bytes)) != 0) refuse_file("make memory that ranks share,", name, errno);
  map();
}

HostMemory::HostMemory(const Handle& p, std::size_t bytes) : bytes_(bytes) {
  if (p.machine != this_machine()) throw IoError("ranks on different machines share no memory");
  file_ = Descriptor(path_of(p), O_RDWR);
  struct stat found {};
  if (!file_.ok() || fstat(file_.number(), &found) != 0) refuse_file("open", path_of(p), errno);
  if (std::size_t(found.st_size) != bytes)
    throw IoError(format("{} has {} bytes, wanted {}", path_of(p), std::int64_t(found.st_size), bytes));
  map();
}

HostMemory::~HostMemory() { munmap(data_, bytes_); }

void HostMemory::map() {
  void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (at == MAP_FAILED) refuse_file("map memory that ranks share,", name, errno);
  data_ = static_cast<std::byte*>(at);
}

HostMemory::Handle HostMemory::place() const { return {this_machine(), std::int32_t(getpid()), file_.number()}; }

}  // namespace octet::comm
