#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "octet/base/descriptor.hpp"

namespace octet {

/// A file of known size that stands under its name only when it is whole. Until publish() it is a temporary file in the same folder
/// (".octet-<process>-<n>.tmp", mode 0666 less the umask), and the destructor removes it. Every function throws IoError.
class NewFile {
 public:
  /// Reserves `size` bytes, so that a full disk is told here. Bytes never written are 0.
  NewFile(std::string path, std::uint64_t size);
  ~NewFile() { discard(); }
  NewFile(NewFile&& from) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Makes the bytes durable; nothing can be written afterwards. A failed fsync is final (the kernel has marked the pages clean, so
  /// a second one would lie): the temporary file is removed.
  void sync();
  /// sync(), then the name: afterwards `path` holds these bytes, also after power loss. Replaces a file, or a symbolic link, that
  /// is there. When this throws, `path` is as before unless only the folder's fsync failed.
  void publish();

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int reason);
  void discard();

  std::string path_, temporary_;  // temporary_ is empty once it was renamed or removed
  std::uint64_t size_ = 0;
  Descriptor file_;
};

/// Removes what processes that were killed left in `folder`: temporary files, and folders "<name>.octet-<process>.tmp" that were not
/// finished. To be called only by the one process that may write there.
void remove_abandoned(const std::string& folder);

}  // namespace octet
