#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "octet/base/regular_file.hpp"

#include "octet/base/descriptor.hpp"

namespace octet::io {

using octet::Link;

/// A regular file open for reading, at the size it had when it was opened. Throws IoError where the system refuses, DataError where
/// the file is at fault.
class InputFile {
 public:
  explicit InputFile(std::string path, Link link = Link::follow);
  ~InputFile();
  InputFile(InputFile&& from) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return opened_.size; }

  /// Fills `out` with the bytes from `offset` on; DataError when the file ends before. Not after map().
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The whole file, read-only and paged in on use, valid as long as this object. Closes the file itself, so that a model of
  /// thousands of shards needs no descriptors.
  std::span<const std::byte> map();
  /// DataError when the file at path() is no longer the one that was opened, or its size or time of change differs: mapped bytes
  /// beyond a new end cannot be touched without a signal.
  void check_unchanged() const;

 private:
  std::string path_;
  RegularFile opened_;
  void* mapped_ = nullptr;
};

}  // namespace octet::io
