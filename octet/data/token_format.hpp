#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/checksum.hpp"

namespace octet::data {

/// The content of a token shard's first 256 bytes. The layout, byte by byte, is in docs/token-format.md.
/// A shard is a part of one long token stream: tokens, then the positions at which documents begin.
struct ShardHeader {
  static constexpr std::uint64_t bytes = 256;
  static constexpr std::uint32_t format_version = 1;
  static constexpr std::uint32_t no_separator = 0xFFFFFFFF;
  static constexpr std::size_t tokenizer_bytes = 64;  // at least one of them zero

  std::uint32_t bytes_per_token = 2;  // 2 or 4
  std::uint64_t token_count = 0;
  std::uint64_t document_count = 0;  // documents that begin in this shard
  std::uint64_t first_token = 0;     // place of this shard's first token in the whole stream
  std::uint64_t first_document = 0;  // number of the first document that begins in this shard
  std::uint32_t vocab_size = 0;
  std::uint32_t separator = no_separator;  // the id that ends a document
  bool has_pairs = false;                  // each two documents are a chosen and a rejected answer; with marks_context
  bool marks_context = false;              // the highest bit of a token says that it is no target; bytes_per_token is 4
  std::string tokenizer;
  Checksum tokens, documents;  // of the bytes from the header to the document table, and of the table

  /// Where the document table begins: after the tokens, at a multiple of 8.
  std::uint64_t table_offset() const { return (bytes + token_count * bytes_per_token + 7) / 8 * 8; }
  std::uint64_t file_bytes() const { return table_offset() + 8 * document_count; }
};

/// Of a token that is no target, such as one of a question.
inline constexpr std::uint32_t context_mark = 0x80000000;

/// 2 where every id fits in 16 bits, else 4.
constexpr std::uint32_t bytes_per_token_of(std::uint32_t vocab_size) { return vocab_size <= 0x10000 ? 2 : 4; }

/// The 256 bytes of a header, its own checksum among them.
std::string encode_header(const ShardHeader&);

/// The header at the front of a shard of `file_bytes` bytes. `front` holds the file's first 256 bytes, or all of a shorter file.
/// Throws DataError that names `path` and the offset at the first invalid value; file_bytes() == `file_bytes` afterwards.
ShardHeader decode_header(std::string_view front, std::uint64_t file_bytes, const std::string& path);

}  // namespace octet::data
