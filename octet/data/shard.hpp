#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "octet/data/foreign_tokens.hpp"
#include "octet/data/mapped_file.hpp"
#include "octet/data/token_format.hpp"

namespace octet::data {

/// How much of a shard is read when it is opened. The header, the sizes and the document table always are.
enum class Verify { header, everything };

/// One token shard, memory-mapped and checked. Const calls are safe from many threads at once.
class Shard {
 public:
  /// Throws DataError (file, offset, expected value, remedy) at the first defect: the header, the file's size, the document table,
  /// and with Verify::everything the tokens' checksum and every id below the vocabulary. Throws IoError when the system refuses.
  explicit Shard(const std::string& path, Verify = Verify::everything);
  /// A file of another program (foreign_tokens.hpp), of which all tokens are read. Its identity is a checksum of its size, its first and
  /// last 64 KiB and the places of documents.
  static Shard foreign(const std::string& path);
  /// Its place among the shards of a stream, and the facts that all of them share.
  void join(std::uint64_t first_token, std::uint64_t first_document, std::uint32_t vocab_size, const std::string& tokenizer);

  const std::string& path() const { return file_.path(); }
  /// That wrote it: "octet", or ForeignTokens::program.
  std::string_view program() const { return program_; }
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
  Shard(MappedFile, ForeignTokens);
  std::string_view token_bytes() const;
  void check_documents() const;

  MappedFile file_;
  ShardHeader header_;
  Checksum identity_;
  std::string_view program_ = "octet";
  std::uint64_t first_byte_ = ShardHeader::bytes;  // of the tokens
  std::vector<std::uint64_t> found_documents_;     // of a file without a table
  std::span<const std::uint64_t> documents_;
};

}  // namespace octet::data
