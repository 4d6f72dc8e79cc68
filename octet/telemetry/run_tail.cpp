#include "octet/telemetry/run_tail.hpp"

#include <algorithm>

#include "octet/base/path.hpp"

namespace octet::telemetry {
namespace {

constexpr std::size_t block_bytes = std::size_t(1) << 20, mark_bytes = 64;

}  // namespace

// Opens the file under its name, if that is another one than before; false when there is none.
bool RunTail::open() {
  if (!exists(path_)) {
    file_ = {}, size_ = 0;
    return false;
  }
  RegularFile now = RegularFile::open(path_, link_);
  size_ = std::int64_t(now.size);
  if (file_.file.ok() && file_.device == now.device && file_.inode == now.inode) return true;
  const bool first = !file_.file.ok() && offset_ == 0;
  file_ = std::move(now);
  if (!first) mark_.assign(1, '\0');  // no line ends in it: another file is no continuation
  return true;
}

// Whether the last line that was read is still where it was.
bool RunTail::continues() const {
  if (offset_ > size_) return false;
  std::string there;
  file_.read(path_, offset_ - std::int64_t(mark_.size()), mark_.size(), there);
  return there == mark_;
}

void RunTail::restart() { offset_ = 0, dropped_ = 0, mark_.clear(); }

RunTail::Progress RunTail::poll(const Take& take, std::int64_t most_bytes) {
  Progress progress;
  const bool there = open();
  if (!there || !continues()) {
    progress.restarted = offset_ > 0 || !mark_.empty();
    progress.at_end = !there;
    restart();
    return progress;
  }
  const std::int64_t most = std::max(most_bytes, std::int64_t(longest_ + block_bytes));  // so that each call passes a line
  if (offset_ + dropped_ > size_) dropped_ = 0;                                          // the torn last line was cut off
  const std::int64_t begin = offset_ + dropped_;
  std::int64_t at = begin;
  waiting_.clear();  // a torn line may have been replaced
  while (at < size_ && at - begin < most) {
    file_.read(path_, at, std::min(block_bytes, std::size_t(size_ - at)), block_);
    if (block_.empty()) break;
    at += std::int64_t(block_.size());
    waiting_ += block_;
    pass_lines(take, progress);
  }
  progress.at_end = at >= size_;
  return progress;
}

void RunTail::pass_lines(const Take& take, Progress& progress) {
  std::size_t begin = 0;
  for (std::size_t end; (end = waiting_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line(waiting_.data() + begin, end - begin);
    if (dropped_ > 0 || line.size() > longest_) ++progress.skipped;
    else take(line, offset_), ++progress.lines;
    offset_ += dropped_ + std::int64_t(line.size()) + 1;
    dropped_ = 0;
    const std::size_t kept = std::min(line.size() + 1, mark_bytes);
    mark_.assign(waiting_, end + 1 - kept, kept);
  }
  waiting_.erase(0, begin);
  if (waiting_.size() > longest_) dropped_ += std::int64_t(waiting_.size()), waiting_.clear();
}

void sample_lines(const std::string& path, std::size_t count, std::size_t window, const RunTail::Take& take, Link link) {
  const RegularFile file = RegularFile::open(path, link);
  const std::int64_t size = std::int64_t(file.size), last = std::max<std::int64_t>(size - std::int64_t(window), 0);
  std::string block;
  std::int64_t passed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = count > 1 ? std::int64_t(double(last) * double(i) / double(count - 1)) : last;
    file.read(path, at, window, block);
    std::size_t begin = at == 0 ? 0 : block.find('\n') + 1;  // npos + 1 is 0: no line begins here
    if (at > 0 && begin == 0) continue;
    for (std::size_t end; (end = block.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (at + std::int64_t(begin) >= passed) {
        take(std::string_view(block).substr(begin, end - begin), at + std::int64_t(begin));
        passed = at + std::int64_t(end) + 1;
      }
  }
}

}  // namespace octet::telemetry
