#include "octet/base/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

const char* remedy_of(int reason) {
  switch (reason) {
    case ENOENT: return "; check the path";
    case ENOTDIR: return "; a part of the path is a file, choose another";
    case EISDIR: return "; it is a folder, name a file";
    case EACCES:
    case EPERM:
    case EROFS: return "; choose another place or change its permissions";
    case ENOSPC:
    case EDQUOT: return "; free some space or choose another place";
    default: return "";
  }
}

}  // namespace

Descriptor::Descriptor(const std::string& path, int flags, unsigned mode) {
  do number_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (number_ < 0 && errno == EINTR);
}

Descriptor& Descriptor::operator=(Descriptor&& from) noexcept {
  std::swap(number_, from.number_);
  return *this;
}

int Descriptor::close() {
  if (number_ < 0) return 0;
  const int failed = ::close(number_);
  number_ = -1;
  return failed ? errno : 0;
}

void refuse_file(std::string_view verb, const std::string& path, int reason) {
  throw IoError(format("cannot {} '{}': {}{}", verb, printable(path), std::generic_category().message(reason), remedy_of(reason)));
}

}  // namespace octet
