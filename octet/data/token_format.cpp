#include "octet/data/token_format.hpp"

#include <bit>
#include <cstring>

#include "octet/base/check.hpp"

namespace octet::data {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian and copied as they are");

constexpr std::string_view magic = "OCTETTOK";
constexpr std::uint64_t flag_of_marks = 1, flag_of_pairs = 2;
// Far beyond any corpus, so that no sum or product of counts overflows.
constexpr std::uint64_t most_tokens = std::uint64_t(1) << 48;

enum Offset : std::size_t {
  at_magic = 0,
  at_version = 8,
  at_bytes_per_token = 12,
  at_token_count = 16,
  at_document_count = 24,
  at_first_token = 32,
  at_first_document = 40,
  at_vocab_size = 48,
  at_separator = 52,
  at_flags = 56,
  at_tokenizer = 64,
  at_tokens_checksum = 128,
  at_documents_checksum = 144,
  at_header_checksum = 240,
};

template <class T>
void put(std::string& bytes, Offset at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
T get(std::string_view bytes, Offset at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Throws DataError unless `ok`: file, byte, expected value, actual value, remedy.
void require(bool ok, const std::string& path, Offset at, std::string_view wanted, const std::string& got) {
  if (ok) return;
  throw DataError(
      format("{}: byte {}: {}, got {}; copy the file again or run `octet tokenize` again", printable(path), int(at), wanted, got));
}

void check_integrity(std::string_view front, const std::string& path) {
  if (front.size() < ShardHeader::bytes)
    throw DataError(
        format("{}: a token shard has a header of {} bytes, this file ends at byte {}; copy the file again or run `octet tokenize` again",
               printable(path), ShardHeader::bytes, front.size()));
  const std::string_view first = front.substr(at_magic, magic.size());
  require(first == magic, path, at_magic, format("a token shard begins with {}", magic), format("'{}'", printable(first)));
  const auto version = get<std::uint32_t>(front, at_version);
  if (version != ShardHeader::format_version)
    throw DataError(
        format("{}: byte {}: this program reads token format version {}, got version {}; run `octet tokenize` again with this program",
               printable(path), int(at_version), ShardHeader::format_version, version));
  const auto stated = get<Checksum>(front, at_header_checksum), found = checksum_of(front.substr(0, at_header_checksum));
  require(stated == found, path, at_header_checksum, "the header is damaged: its checksum must be " + to_text(stated), to_text(found));
}

void check_ranges(const ShardHeader& h, const std::string& path) {
  require(h.bytes_per_token == 2 || h.bytes_per_token == 4, path, at_bytes_per_token, "bytes per token must be 2 or 4",
          std::to_string(h.bytes_per_token));
  require(h.token_count >= 1 && h.token_count <= most_tokens, path, at_token_count, "the token count must be 1 to 2^48",
          std::to_string(h.token_count));
  require(h.document_count <= h.token_count, path, at_document_count,
          format("at most {} documents can begin in {} tokens", h.token_count, h.token_count), std::to_string(h.document_count));
  require(h.first_token <= most_tokens, path, at_first_token, "the first token must be below 2^48", std::to_string(h.first_token));
  require(h.first_document <= h.first_token, path, at_first_document,
          format("at most {} documents can begin before this shard", h.first_token), std::to_string(h.first_document));
  const std::uint64_t most_ids = h.bytes_per_token == 2 ? 0x10000 : 0x7FFFFFFF;
  require(h.vocab_size >= 1 && h.vocab_size <= most_ids, path, at_vocab_size, format("the vocabulary must have 1 to {} ids", most_ids),
          std::to_string(h.vocab_size));
  require(h.separator == ShardHeader::no_separator || h.separator < h.vocab_size, path, at_separator,
          format("the document separator must be an id below {}", h.vocab_size), std::to_string(h.separator));
  require(!h.marks_context || h.bytes_per_token == 4, path, at_bytes_per_token, "bytes per token must be 4 where tokens have marks",
          std::to_string(h.bytes_per_token));
  require(!h.tokenizer.empty() && h.tokenizer.size() < ShardHeader::tokenizer_bytes, path, at_tokenizer,
          "the tokenizer's name must have 1 to 63 bytes and end with a zero", std::to_string(h.tokenizer.size()) + " bytes");
}

}  // namespace

std::string encode_header(const ShardHeader& h) {
  check(h.tokenizer.size() < ShardHeader::tokenizer_bytes, "token shard: a tokenizer's name may have at most 63 bytes, got {}",
        h.tokenizer.size());
  std::string bytes(ShardHeader::bytes, '\0');
  std::memcpy(bytes.data() + at_magic, magic.data(), magic.size());
  put(bytes, at_version, ShardHeader::format_version);
  put(bytes, at_bytes_per_token, h.bytes_per_token);
  put(bytes, at_token_count, h.token_count);
  put(bytes, at_document_count, h.document_count);
  put(bytes, at_first_token, h.first_token);
  put(bytes, at_first_document, h.first_document);
  put(bytes, at_vocab_size, h.vocab_size);
  put(bytes, at_separator, h.separator);
  put(bytes, at_flags, (h.marks_context ? flag_of_marks : 0) | (h.has_pairs ? flag_of_pairs : 0));
  std::memcpy(bytes.data() + at_tokenizer, h.tokenizer.data(), h.tokenizer.size());
  put(bytes, at_tokens_checksum, h.tokens);
  put(bytes, at_documents_checksum, h.documents);
  put(bytes, at_header_checksum, checksum_of(std::string_view(bytes).substr(0, at_header_checksum)));
  return bytes;
}

ShardHeader decode_header(std::string_view front, std::uint64_t file_bytes, const std::string& path) {
  check_integrity(front, path);
  ShardHeader h;
  h.bytes_per_token = get<std::uint32_t>(front, at_bytes_per_token);
  h.token_count = get<std::uint64_t>(front, at_token_count);
  h.document_count = get<std::uint64_t>(front, at_document_count);
  h.first_token = get<std::uint64_t>(front, at_first_token);
  h.first_document = get<std::uint64_t>(front, at_first_document);
  h.vocab_size = get<std::uint32_t>(front, at_vocab_size);
  h.separator = get<std::uint32_t>(front, at_separator);
  const auto flags = get<std::uint64_t>(front, at_flags);
  require(flags == 0 || flags == flag_of_marks || flags == (flag_of_marks | flag_of_pairs), path, at_flags,
          "the flags must be 0, 1 or 3; run `octet tokenize` again with this program", std::to_string(flags));
  h.marks_context = (flags & flag_of_marks) != 0, h.has_pairs = (flags & flag_of_pairs) != 0;
  const std::string_view name = front.substr(at_tokenizer, ShardHeader::tokenizer_bytes);
  h.tokenizer = name.substr(0, name.find('\0'));
  h.tokens = get<Checksum>(front, at_tokens_checksum);
  h.documents = get<Checksum>(front, at_documents_checksum);
  check_ranges(h, path);
  if (file_bytes != h.file_bytes())
    throw DataError(
        format("{}: the header's {} tokens and {} documents make a file of {} bytes, this one has {}: it is {}; copy the file again or run "
               "`octet tokenize` again",
               printable(path), h.token_count, h.document_count, h.file_bytes(), file_bytes,
               file_bytes < h.file_bytes() ? "truncated" : "too long"));
  return h;
}

}  // namespace octet::data
