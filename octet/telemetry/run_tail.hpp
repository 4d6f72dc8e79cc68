#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "octet/base/regular_file.hpp"

namespace octet::telemetry {

/// Follows a `metrics.jsonl` that a process appends to. It reads each complete line once and keeps an incomplete last line for the next
/// call. A resumed run cuts its file back; the tail then begins again at the first byte.
class RunTail {
 public:
  /// `line` has no newline and is valid during the call; `offset` is the place of its first byte.
  using Take = std::function<void(std::string_view line, std::int64_t offset)>;

  /// One call of poll().
  struct Progress {
    bool restarted = false;    // the file was cut back or replaced: drop everything that came from earlier lines
    bool at_end = false;       // every complete line was read
    std::int64_t lines = 0;    // passed to `take`
    std::int64_t skipped = 0;  // lines longer than the limit, which are not passed on
  };

  explicit RunTail(std::string path, Link link = Link::refuse, std::size_t longest_line = std::size_t(1) << 20)
      : path_(std::move(path)), link_(link), longest_(longest_line) {}

  /// Reads at most about `most_bytes` of lines that are new since the last call. A file that is not there yet has no lines. Throws IoError
  /// and DataError (not a regular file). After `restarted` is returned no line was passed: the next call begins at the first one.
  Progress poll(const Take& take, std::int64_t most_bytes);

  /// The offset behind the last line that was read, and the size of the file at the last call.
  std::int64_t offset() const { return offset_; }
  std::int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  bool open();
  bool continues() const;
  void restart();
  void pass_lines(const Take& take, Progress& progress);

  std::string path_;
  Link link_;
  std::size_t longest_;
  RegularFile file_;
  std::int64_t offset_ = 0, size_ = 0;
  std::string mark_;             // the end of the last line that was read
  std::string waiting_, block_;  // of one call: bytes that were read and not passed
  std::int64_t dropped_ = 0;     // bytes of an overlong line that were read and dropped
};

/// Lines of a file at `count` evenly spaced places: at each, the complete lines within `window` bytes. For a look at a file that is too
/// large to read at once. Places and lines rise. Throws as RunTail does.
void sample_lines(const std::string& path, std::size_t count, std::size_t window, const RunTail::Take& take, Link = Link::refuse);

}  // namespace octet::telemetry
