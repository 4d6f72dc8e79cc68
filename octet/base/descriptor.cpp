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
    case ELOOP: return "; its symbolic links lead in a circle, name the file itself";
    case ENAMETOOLONG: return "; shorten the path";
    case EMFILE:
    case ENFILE: return "; raise the limit of open files (ulimit -n)";
    case EFBIG: return "; raise the limit of file sizes (ulimit -f)";
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

void open_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != number) ::dup2(opened, number), ::close(opened);
  }
}

void refuse_file(std::string_view verb, const std::string& path, int reason) {
  throw IoError(format("cannot {} '{}': {}{}", verb, printable(path), std::generic_category().message(reason), remedy_of(reason)));
}

}  // namespace octet
