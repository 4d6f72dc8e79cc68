#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "octet/data/mapped_file.hpp"
#include "octet/data/token_format.hpp"

namespace octet::data {

/// How much of a shard is read when it is opened. The header, the sizes and the document table always are.
enum class Verify { header, everything };

/// One token shard, memory-mapped and checked. Const calls are safe from many threads at once.
/// Another shard format (llm.c, Megatron, ...) is another way to fill these members.
class Shard {
 public:
  /// Throws DataError (file, offset, expected value, remedy) at the first defect: the header, the file's size, the document table,
  /// and with Verify::everything the tokens' checksum and every id below the vocabulary. Throws IoError when the system refuses.
  explicit Shard(const std::string& path, Verify = Verify::everything);

  const std::string& path() const { return file_.path(); }
  const ShardHeader& header() const { return header_; }
  /// The header's checksum. It covers the whole shard, since the header contains the others.
  Checksum identity() const { return identity_; }
  /// Places in this shard, strictly rising, at which a document begins. Tokens before the first belong to a document of an earlier shard.
  std::span<const std::uint64_t> document_starts() const { return documents_; }

  /// Widens tokens [first, first + out.size()) into `out`. Throws DataError when the file was changed after it was opened, or at an
  /// id that is not below the vocabulary (which without full verification is first seen here).
  void read(std::uint64_t first, std::span<std::int32_t> out) const;
  /// The same with -1 for tokens that are marked as context.
  void read_targets(std::uint64_t first, std::span<std::int32_t> out) const;
  /// The part that Verify::everything adds, later: throws DataError on a wrong checksum of the tokens or an id out of range. Shows all ids
  /// to `see`, a part at a time, in their order.
  void check_tokens(const std::function<void(std::span<const std::int32_t>)>& see = nullptr) const;

 private:
  std::string_view token_bytes() const;
  void check_documents() const;

  MappedFile file_;
  ShardHeader header_;
  Checksum identity_;
  std::span<const std::uint64_t> documents_;
};

}  // namespace octet::data
