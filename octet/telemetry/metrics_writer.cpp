#include "octet/telemetry/metrics_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/event_line.hpp"

namespace octet::telemetry {
namespace {

constexpr std::size_t most_waiting = std::size_t(16) << 20;

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
    : path_(std::move(path)),
      file_(path_.empty() ? Descriptor() : open_own_file(path_, O_RDWR | O_CREAT | O_APPEND, "open")),
      sync_every_(sync_every),
      last_sync_(std::chrono::steady_clock::now()) {
  if (path_.empty()) return;
  // On file systems without locks (some NFS) the call fails with another error, and the run continues without a lock.
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw IoError(
        format("'{}' belongs to a run that is still going: stop that run, or choose another folder for this one", printable(path_)));
  end_ = end_of_last_line(file_.number());
  if (end_ < 0) refuse_file("read", path_, errno);
  if (::ftruncate(file_.number(), end_) != 0) refuse_file("cut the torn last line of", path_, errno);
}

MetricsWriter::~MetricsWriter() {
  if (file_.ok()) ::fdatasync(file_.number());
}

void MetricsWriter::emit(const Event& event) {
  if (path_.empty()) return;
  const std::string line = event_line(event) + '\n';
  const bool last = std::holds_alternative<EndEvent>(event);
  const std::scoped_lock lock(mutex_);
  waiting_ += line;
  if (const int reason = write_waiting()) {
    const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
    if (last || !full || waiting_.size() > most_waiting) refuse_write(reason);
  } else if (last || std::chrono::steady_clock::now() - last_sync_ >= sync_every_) {
    sync();
  }
  if (show_) show_(event);
}

void MetricsWriter::mirror(std::function<void(const Event&)> show) {
  const std::scoped_lock lock(mutex_);
  show_ = std::move(show);
}

// 0, or the reason why the lines still wait.
int MetricsWriter::write_waiting() {
  std::size_t written = 0;
  while (written < waiting_.size()) {
    const ssize_t n = ::write(file_.number(), waiting_.data() + written, waiting_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      // A torn line is allowed only at the end: without this cut the next event would be appended to it.
      return ::ftruncate(file_.number(), end_) == 0 ? reason : EIO;
    }
    written += std::size_t(n);
  }
  end_ += off_t(written);
  waiting_.clear();
  return 0;
}

void MetricsWriter::refuse_write(int reason) { refuse_file("write to", path_, reason); }

void MetricsWriter::sync() {
  make_durable();
  last_sync_ = std::chrono::steady_clock::now();
}

void MetricsWriter::make_durable() {
  if (path_.empty()) return;
  // Pipes and some file systems cannot sync and return EINVAL, which is no error.
  if (::fdatasync(file_.number()) != 0 && errno != EINVAL) refuse_file("make durable", path_, errno);
}

void MetricsWriter::cut_back(std::int64_t bytes) {
  if (path_.empty()) return;
  const std::scoped_lock lock(mutex_);
  if (bytes < 0 || bytes > end_)
    throw DataError(format("{}: the file has {} bytes of complete lines, it had {} when the checkpoint was made; restore the file",
                           printable(path_), end_, bytes));
  if (::ftruncate(file_.number(), off_t(bytes)) != 0) refuse_file("cut back", path_, errno);
  end_ = bytes;
}

std::optional<std::int64_t> MetricsWriter::last_step(std::int64_t bytes) {
  constexpr std::int64_t most_read = std::int64_t(16) << 20;
  constexpr std::string_view start = "{\"event\":\"step\",\"step\":";
  const std::scoped_lock lock(mutex_);
  if (path_.empty() || bytes < 0 || bytes > end_) return {};  // cut_back() refuses the latter
  std::string tail(std::size_t(std::min(bytes, most_read)), 0);
  const off_t begin = off_t(bytes) - off_t(tail.size());
  for (std::size_t at = 0; at < tail.size();) {
    const ssize_t n = ::pread(file_.number(), tail.data() + at, tail.size() - at, begin + off_t(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse_file("read", path_, n < 0 ? errno : EIO);
    at += std::size_t(n);
  }
  if (!tail.empty() && tail.back() != '\n')
    throw DataError(format("{}: no line ends after {} bytes, where the checkpoint's events end; restore the file or the checkpoint",
                           printable(path_), bytes));
  const std::size_t at = tail.rfind(start);
  if (at == tail.npos) return begin == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  return std::atoll(tail.c_str() + at + start.size());
}

void MetricsWriter::visit_state(StateVisitor& visitor) {
  std::int64_t bytes;
  {
    const std::scoped_lock lock(mutex_);
    if (const int reason = write_waiting()) refuse_write(reason);
    bytes = end_;
  }
  visitor.state("bytes", bytes);
  if (visitor.restoring()) cut_back(bytes);
}

}  // namespace octet::telemetry
