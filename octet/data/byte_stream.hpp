#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace octet::data {

/// A file to tokenize and the size it had when it was chosen.
struct TextFile {
  std::string path;
  std::uint64_t bytes = 0;
};

/// The content of a text file, read from front to back in bounded memory.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Appends `bytes` bytes of content to `out`, fewer only at its end. Throws IoError when the system refuses, DataError when the file
  /// changed since it was chosen, or when compressed content is damaged or ends early.
  virtual void read(std::size_t bytes, std::string& out) = 0;
  /// Bytes of the file, compressed or not, that were read so far.
  virtual std::uint64_t consumed() const = 0;
};

/// Opens `file`: gzip data if its name ends with .gz, Zstandard data if with .zst, else plain bytes. A compressed file may have several
/// members or frames. A Zstandard frame needs memory for its window; one of more than 128 MiB is refused.
std::unique_ptr<ByteStream> open_bytes(const TextFile& file);

/// `path` without the ending of a compressed file.
std::string without_compression(const std::string& path);

}  // namespace octet::data
