#include "octet/data/shard_builder.hpp"

#include <algorithm>
#include <utility>

#include "octet/base/check.hpp"

namespace octet::data {
namespace {

/// Appends every id as one T.
template <class T>
void narrow(std::string& bytes, std::span<const std::int32_t> ids) {
  const std::size_t old = bytes.size();
  bytes.resize(old + ids.size() * sizeof(T));
  T* const out = reinterpret_cast<T*>(bytes.data() + old);  // aligned: the header is 256 bytes, every token sizeof(T)
  for (std::size_t i = 0; i < ids.size(); ++i) out[i] = T(ids[i]);
}

/// Space for a header. All memory is reserved at once: untouched pages cost nothing, and growing would copy.
std::string empty_file(std::uint64_t shard_bytes) {
  std::string bytes;
  bytes.reserve(std::size_t(std::min<std::uint64_t>(shard_bytes, std::uint64_t(256) << 20)));
  bytes.resize(ShardHeader::bytes);
  return bytes;
}

}  // namespace

ShardBuilder::ShardBuilder(const tokenizer::Tokenizer& tokenizer, std::uint64_t shard_bytes, bool marks_context, bool has_pairs)
    : shard_bytes_(shard_bytes), bytes_(empty_file(shard_bytes)) {
  check(shard_bytes >= least_shard_bytes, "shard builder: a shard must have at least {} bytes, got {}", least_shard_bytes, shard_bytes);
  header_.vocab_size = std::uint32_t(tokenizer.vocab_size());
  header_.marks_context = marks_context, header_.has_pairs = has_pairs;
  header_.bytes_per_token = marks_context ? 4 : bytes_per_token_of(header_.vocab_size);
  header_.separator = tokenizer.document_separator() ? std::uint32_t(*tokenizer.document_separator()) : ShardHeader::no_separator;
  header_.tokenizer = tokenizer.name();
}

std::uint64_t ShardBuilder::room() const {
  const std::uint64_t padding = 7, tables = 8 * (documents_.size() + (document_pending_ ? 1 : 0));
  const std::uint64_t used = bytes_.size() + padding + tables;
  return used >= shard_bytes_ ? 0 : (shard_bytes_ - used) / header_.bytes_per_token;
}

std::size_t ShardBuilder::append(std::span<const std::int32_t> ids) {
  const auto taken = std::size_t(std::min<std::uint64_t>(ids.size(), room()));
  if (taken == 0) return 0;
  if (document_pending_) documents_.push_back(header_.token_count);
  document_pending_ = false;
  if (header_.bytes_per_token == 2) narrow<std::uint16_t>(bytes_, ids.first(taken));
  else narrow<std::uint32_t>(bytes_, ids.first(taken));
  header_.token_count += taken;
  return taken;
}

ShardBuilder::Finished ShardBuilder::finish() {
  const std::string_view table(reinterpret_cast<const char*>(documents_.data()), 8 * documents_.size());
  header_.document_count = documents_.size();
  bytes_.resize(header_.table_offset());
  header_.tokens = checksum_of(std::string_view(bytes_).substr(ShardHeader::bytes));
  header_.documents = checksum_of(table);
  bytes_ += table;
  bytes_.replace(0, ShardHeader::bytes, encode_header(header_));
  Finished finished{std::exchange(bytes_, empty_file(shard_bytes_)), header_};
  header_.first_token += header_.token_count, header_.first_document += header_.document_count;
  header_.token_count = 0;
  documents_.clear();
  return finished;
}

}  // namespace octet::data
