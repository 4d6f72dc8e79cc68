#include "octet/inspect/tokens.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "octet/base/aligned.hpp"
#include "octet/base/error.hpp"
#include "octet/base/folder.hpp"
#include "octet/base/text.hpp"
#include "octet/data/dataset.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::inspect {
namespace {

constexpr std::size_t most_shown = 10;
using Counts = std::unordered_map<std::int32_t, std::uint64_t>;  // a vocabulary may be large where few ids occur

std::string document_text(const data::Shard& shard) {
  const auto starts = shard.document_starts();
  const std::uint64_t tokens = shard.header().token_count;
  if (starts.empty()) return "none begins here";
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) longest = std::max(longest, (i + 1 < starts.size() ? starts[i + 1] : tokens) - starts[i]);
  return format("{}, the longest of {} tokens", grouped((long long)starts.size()), grouped((long long)longest));
}

// Checks a shard's tokens and counts them, in one reading.
void count_ids(const data::Shard& shard, Counts& counts) {
  shard.check_tokens([&](std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids) ++counts[id];
  });
}

// The tokenizer of a shard, or null if it is not in the shard's folder.
std::unique_ptr<const tokenizer::Tokenizer> tokenizer_of(const data::Shard& shard) {
  try {
    return data::open_tokenizer_of(shard.header().tokenizer, folder_of(shard.path()));
  } catch (const DataError&) {
    return nullptr;
  }
}

std::string frequent_text(const data::Shard& shard, const Counts& counts) {
  const data::ShardHeader& h = shard.header();
  const auto tokenizer = tokenizer_of(shard);
  const auto meaning = [&](std::int32_t id) -> std::string {
    if (std::uint32_t(id) == h.separator) return "ends a document";
    return tokenizer ? "\"" + printable(tokenizer->decode(std::span(&id, 1))) + "\"" : "";
  };
  std::vector<std::int32_t> ids;
  std::uint64_t total = 0;
  for (const auto& [id, n] : counts) total += n, ids.push_back(id);
  const auto more = [&](std::int32_t a, std::int32_t b) { return counts.at(a) != counts.at(b) ? counts.at(a) > counts.at(b) : a < b; };
  std::sort(ids.begin(), ids.end(), more);
  TextTable table{{"text", "id", "tokens", "share"}};
  for (std::size_t i = 0; i < std::min(ids.size(), most_shown); ++i) {
    const std::uint64_t n = counts.at(ids[i]);
    table.push_back({meaning(ids[i]), to_text(ids[i]), grouped((long long)n), fixed(100.0 * double(n) / double(total), 2) + "%"});
  }
  return format("{} of {} ids occur, the most frequent:\n{}", grouped((long long)ids.size()), grouped(h.vocab_size), aligned(table));
}

std::string header_text(const data::ShardHeader& h, std::uint64_t tokens, std::uint64_t documents) {
  return format("tokenizer  {}, {} ids, {} bytes per token\ntokens     {}\ndocuments  {}\n", printable(h.tokenizer), grouped(h.vocab_size),
                h.bytes_per_token, grouped((long long)tokens), grouped((long long)documents));
}

}  // namespace

std::string dataset_text(const std::string& folder) {
  const data::Dataset dataset(folder, data::Verify::header);
  const data::ShardHeader& h = dataset.shards()[0].header();
  std::string out = format("dataset    {}\n", printable(folder)) + header_text(h, dataset.token_count(), dataset.document_count()) +
                    format("health     every checksum and id verified; fingerprint {}\n\n", dataset.fingerprint());
  if (dataset.has_pairs()) out.insert(out.rfind("health"), format("pairs      {}, of two documents each\n", dataset.document_count() / 2));
  TextTable table{{"shard", "checksum", "tokens", "documents that begin here"}};
  Counts counts;
  for (const data::Shard& shard : dataset.shards()) {
    table.push_back({printable(std::filesystem::path(shard.path()).filename().string()), to_text(shard.identity()),
                     grouped((long long)shard.header().token_count), document_text(shard)});
    count_ids(shard, counts);
  }
  return out + aligned(table, 2) + "\n" + frequent_text(dataset.shards()[0], counts);
}

std::string shard_text(const std::string& path) {
  const data::Shard shard(path, data::Verify::header);
  const data::ShardHeader& h = shard.header();
  Counts counts;
  count_ids(shard, counts);
  return format("shard      {}, format {}\n", printable(path), data::ShardHeader::format_version) +
         format("tokenizer  {}, {} ids, {} bytes per token\n", printable(h.tokenizer), grouped(h.vocab_size), h.bytes_per_token) +
         format("tokens     {}, from token {} of the whole text on\n", grouped((long long)h.token_count),
                grouped((long long)h.first_token)) +
         format("documents  {}\n", document_text(shard)) +
         format("health     every checksum and id verified; checksum {}\n\n", shard.identity()) + frequent_text(shard, counts);
}

std::string foreign_tokens_text(const std::string& path) {
  const data::Dataset dataset(path, data::Verify::header);
  const data::Shard& shard = dataset.shards()[0];
  Counts counts;
  std::vector<std::int32_t> some(1 << 14);
  for (std::uint64_t i = 0; i < dataset.token_count(); i += some.size()) {
    const auto part = std::span(some).first(std::min<std::uint64_t>(some.size(), dataset.token_count() - i));
    dataset.read(i, part);
    for (const std::int32_t id : part) ++counts[id];
  }
  return format("tokens of  {}, {}\n", shard.program(), printable(path)) +
         header_text(shard.header(), dataset.token_count(), dataset.document_count()) +
         format("health     size and ids verified; fingerprint {}\n\n", dataset.fingerprint()) + frequent_text(shard, counts);
}

}  // namespace octet::inspect
