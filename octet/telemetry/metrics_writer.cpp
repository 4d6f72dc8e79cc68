#include "octet/telemetry/metrics_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/event_line.hpp"

namespace octet {
namespace {

[[noreturn]] void refuse(std::string_view verb, const std::string& path, int reason) {
  throw IoError(format("cannot {} '{}': {}", verb, printable(path), std::generic_category().message(reason)));
}

/// The offset behind the last newline of the file, found from its end; -1 with errno when it cannot be read.
off_t end_of_last_line(int file) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) return -1;
  char block[4096];
  for (off_t end = facts.st_size; end > 0;) {
    const off_t begin = end > off_t(sizeof block) ? end - off_t(sizeof block) : 0;
    const ssize_t n = ::pread(file, block, std::size_t(end - begin), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    for (ssize_t i = n; i-- > 0;)
      if (block[i] == '\n') return begin + i + 1;
    end = begin;
  }
  return 0;
}

}  // namespace

MetricsWriter::MetricsWriter(std::string path, std::chrono::seconds sync_every)
    : path_(std::move(path)), sync_every_(sync_every), last_sync_(std::chrono::steady_clock::now()) {
  do file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  while (file_ < 0 && errno == EINTR);
  if (file_ < 0) refuse("open", path_, errno);
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw IoError(
            format("'{}' belongs to a run that is still going: stop that one, or give this one another folder", printable(path_)));
      refuse("lock", path_, errno);
    }
    end_ = end_of_last_line(file_);
    if (end_ < 0) refuse("read", path_, errno);
    if (::ftruncate(file_, end_) != 0) refuse("cut the torn last line of", path_, errno);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

MetricsWriter::~MetricsWriter() {
  ::fdatasync(file_);
  ::close(file_);
}

void MetricsWriter::emit(const Event& event) {
  const std::string line = event_line(event) + '\n';
  const std::scoped_lock lock(mutex_);
  append(line);
  if (std::holds_alternative<EndEvent>(event) || std::chrono::steady_clock::now() - last_sync_ >= sync_every_) sync();
}

void MetricsWriter::append(const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(file_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      // A torn line is allowed at the end alone: without this cut the next event would be glued to it.
      if (::ftruncate(file_, end_) == 0) refuse("write to", path_, reason);
      refuse("write to, nor repair,", path_, reason);
    }
    written += std::size_t(n);
  }
  end_ += off_t(written);
}

void MetricsWriter::sync() {
  // Pipes and some file systems cannot sync and say EINVAL; there is then nothing to lose to a power failure either.
  if (::fdatasync(file_) != 0 && errno != EINVAL) refuse("make durable", path_, errno);
  last_sync_ = std::chrono::steady_clock::now();
}

}  // namespace octet
