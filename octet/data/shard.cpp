#include "octet/data/shard.hpp"

#include <algorithm>
#include <vector>

#include "octet/base/check.hpp"

namespace octet::data {
namespace {

/// out[i] = source[i]; returns the largest. No early exit, so that the compiler vectorises it.
template <class T>
std::uint32_t widen(const T* source, std::span<std::int32_t> out) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    most = std::max(most, std::uint32_t(source[i]));
    out[i] = std::int32_t(source[i]);
  }
  return most;
}

std::uint32_t unmarked(const std::uint32_t* source, std::span<std::int32_t> out) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::int32_t(source[i] & ~context_mark);
    most = std::max(most, std::uint32_t(out[i]));
  }
  return most;
}

}  // namespace

void Shard::read_targets(std::uint64_t first, std::span<std::int32_t> out) const {
  read(first, out);
  if (!header_.marks_context) return;
  const auto* const source = reinterpret_cast<const std::uint32_t*>(token_bytes().data()) + first;
  for (std::size_t i = 0; i < out.size(); ++i)
    if ((source[i] & context_mark) != 0) out[i] = -1;
}

Shard::Shard(const std::string& path, Verify verify)
    : file_(path),
      header_(decode_header(file_.bytes().substr(0, ShardHeader::bytes), file_.bytes().size(), path)),
      identity_(checksum_of(file_.bytes().substr(0, ShardHeader::bytes))),
      documents_(reinterpret_cast<const std::uint64_t*>(file_.bytes().data() + header_.table_offset()), header_.document_count) {
  check_documents();
  if (verify == Verify::everything) check_tokens();
}

std::string_view Shard::token_bytes() const { return file_.bytes().substr(first_byte_, header_.token_count * header_.bytes_per_token); }

Shard::Shard(MappedFile file, ForeignTokens t)
    : file_(std::move(file)), first_byte_(t.first_byte), found_documents_(std::move(t.documents)), documents_(found_documents_) {
  constexpr std::size_t seen = std::size_t(64) << 10;
  header_.bytes_per_token = t.bytes_per_token, header_.token_count = t.count, header_.vocab_size = t.vocab_size;
  header_.document_count = documents_.size(), program_ = t.program;
  const std::string_view bytes = file_.bytes(), places(reinterpret_cast<const char*>(documents_.data()), documents_.size_bytes());
  const std::string_view last = bytes.substr(bytes.size() - std::min(seen, bytes.size()));
  identity_ = checksum_of(format("{} {} {} {}", bytes.size(), to_text(checksum_of(bytes.substr(0, seen))), to_text(checksum_of(last)),
                                 to_text(checksum_of(places))));
}

Shard Shard::foreign(const std::string& path) {
  MappedFile file(path);
  ForeignTokens tokens = find_foreign_tokens(file);
  return Shard(std::move(file), std::move(tokens));
}

void Shard::join(std::uint64_t first_token, std::uint64_t first_document, std::uint32_t vocab_size, const std::string& tokenizer) {
  header_.first_token = first_token, header_.first_document = first_document, header_.vocab_size = vocab_size;
  header_.tokenizer = tokenizer;
}

void Shard::check_documents() const {
  const Checksum found = checksum_of(file_.bytes().substr(header_.table_offset()));
  if (found != header_.documents)
    throw DataError(format(
        "{}: byte {}: the document table is damaged: its checksum must be {}, got {}; copy the file again or run `octet tokenize` again",
        printable(path()), header_.table_offset(), header_.documents, found));
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    if (documents_[i] < least || documents_[i] >= header_.token_count)
      throw DataError(format("{}: byte {}: document {} must begin at a token from {} to {}, got {}; run `octet tokenize` again",
                             printable(path()), header_.table_offset() + 8 * i, i, least, header_.token_count - 1, documents_[i]));
    least = documents_[i] + 1;
  }
}

void Shard::check_tokens(const std::function<void(std::span<const std::int32_t>)>& see) const {
  const Checksum found = checksum_of(file_.bytes().substr(ShardHeader::bytes, header_.table_offset() - ShardHeader::bytes));
  if (found != header_.tokens)
    throw DataError(
        format("{}: byte {}: the tokens are damaged: their checksum must be {}, got {}; copy the file again or run `octet tokenize` again",
               printable(path()), ShardHeader::bytes, header_.tokens, found));
  std::vector<std::int32_t> some(std::min<std::uint64_t>(header_.token_count, 1 << 14));
  for (std::uint64_t i = 0; i < header_.token_count; i += some.size()) {
    const auto part = std::span(some).first(std::min<std::uint64_t>(some.size(), header_.token_count - i));
    read(i, part);
    if (see) see(part);
  }
}

void Shard::read(std::uint64_t first, std::span<std::int32_t> out) const {
  check(first <= header_.token_count && out.size() <= header_.token_count - first, "shard '{}': tokens {} to {} are wanted, there are {}",
        path(), first, first + out.size(), header_.token_count);
  file_.check_unchanged();
  const char* const source = token_bytes().data() + first * header_.bytes_per_token;
  const std::uint32_t most = header_.marks_context          ? unmarked(reinterpret_cast<const std::uint32_t*>(source), out)
                             : header_.bytes_per_token == 2 ? widen(reinterpret_cast<const std::uint16_t*>(source), out)
                                                            : widen(reinterpret_cast<const std::uint32_t*>(source), out);
  if (most < header_.vocab_size || out.empty()) return;
  const auto bad = std::ranges::find_if(out, [&](std::int32_t id) { return std::uint32_t(id) >= header_.vocab_size; });
  const std::uint64_t place = first + std::uint64_t(bad - out.begin());
  throw DataError(
      format("{}: byte {}: token ids must be below the vocabulary of {}, token {} is {}; copy the file again or run `octet tokenize` again",
             printable(path()), first_byte_ + place * header_.bytes_per_token, header_.vocab_size, place, std::uint32_t(*bad)));
}

}  // namespace octet::data
