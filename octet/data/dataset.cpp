#include "octet/data/dataset.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/check.hpp"
#include "octet/base/path.hpp"
#include "octet/data/glob.hpp"
#include "octet/data/manifest.hpp"

namespace octet::data {
namespace {

/// Throws DataError unless the shard is the one that the manifest means, at its place in the stream.
void require_match(const Shard& shard, const ShardHeader& first, const Manifest& manifest, const Manifest::Entry& entry,
                   std::uint64_t first_token, std::uint64_t first_document) {
  const ShardHeader& h = shard.header();
  const auto require = [&](bool ok, std::string_view what, const std::string& wanted, const std::string& got) {
    if (ok) return;
    throw DataError(
        format("{}: {} must be {} according to {}, got {}: it is not the shard that belongs here; copy the dataset again or run `octet "
               "tokenize` again",
               printable(shard.path()), what, wanted, Manifest::file_name, printable(got)));
  };
  const auto number = [&](std::string_view what, std::uint64_t wanted, std::uint64_t got) {
    require(wanted == got, what, std::to_string(wanted), std::to_string(got));
  };
  require(h.tokenizer == manifest.tokenizer, "the tokenizer", printable(manifest.tokenizer), h.tokenizer);
  number("the vocabulary", manifest.vocab_size, h.vocab_size);
  number("the flag of marks", first.marks_context, h.marks_context);
  number("the flag of pairs", first.has_pairs, h.has_pairs);
  number("the token count", entry.tokens, h.token_count);
  number("the document count", entry.documents, h.document_count);
  number("the first token's place", first_token, h.first_token);
  number("the first document's number", first_document, h.first_document);
  require(to_text(shard.identity()) == entry.checksum, "the header's checksum", printable(entry.checksum), to_text(shard.identity()));
  if (first_token == 0 && (h.document_count == 0 || shard.document_starts()[0] != 0))
    throw DataError(format("{}: the first shard must begin with a document; run `octet tokenize` again", printable(shard.path())));
}

}  // namespace

// Of files of another program.
void Dataset::open_foreign(const std::string& files) {
  const std::vector<std::string> paths = files_matching(files);
  if (paths.empty())
    throw ConfigError(
        format("{} = '{}': there is no such file; name token files of llm.c, LLM.Q, nanoGPT or Megatron, or the folder of a dataset", key_,
               printable(files)));
  std::uint32_t vocabulary = 0;
  for (const std::string& path : paths) {
    shards_.push_back(Shard::foreign(path));
    vocabulary = std::max(vocabulary, shards_.back().header().vocab_size);
  }
  std::string identity = unknown_tokenizer;
  if (const auto found = tokenizer::identity_in(folder_)) {
    const auto opened = tokenizer::open_tokenizer(folder_);
    if (std::uint32_t(opened->vocab_size()) < vocabulary && shards_.front().header().bytes_per_token == 4)
      throw DataError(format("{}: its files have ids up to {}, and its {} has {} tokens; put the right one there", printable(folder_),
                             vocabulary - 1, tokenizer::file_name, opened->vocab_size()));
    identity = *found, vocabulary = std::max(vocabulary, std::uint32_t(opened->vocab_size()));
  }
  for (Shard& shard : shards_) {
    shard.join(token_count_, document_count_, vocabulary, identity);
    token_count_ += shard.header().token_count, document_count_ += shard.header().document_count;
  }
  if (shards_.front().document_starts().empty() || shards_.front().document_starts()[0] != 0)
    throw DataError(
        format("{}: the first file must begin with a document; name the first one of the files, too", printable(paths.front())));
}

Dataset::Dataset(const std::string& folder, Verify verify, const std::string& key) : folder_(folder_of_data(folder)), key_(key) {
  if (names_foreign_tokens(folder) && !is_folder(folder)) open_foreign(folder);
  else open_own(verify);
}

void Dataset::open_own(Verify verify) {
  const Manifest manifest = read_manifest(folder_, key_);
  shards_.reserve(manifest.shards.size());
  for (const Manifest::Entry& entry : manifest.shards) {
    shards_.emplace_back((std::filesystem::path(folder_) / entry.file).string(), verify);
    require_match(shards_.back(), shards_.front().header(), manifest, entry, token_count_, document_count_);
    token_count_ += entry.tokens, document_count_ += entry.documents;
  }
  if (has_pairs() && document_count_ % 2 != 0)
    throw DataError(format("{}/{}: a dataset with pairs has two documents for each, and this one has {}; run `octet tokenize` again",
                           printable(folder_), Manifest::file_name, document_count_));
}

std::uint64_t Dataset::document_start(std::uint64_t number) const {
  check(number < document_count_, "dataset '{}': document {} is wanted, there are {}", folder_, number, document_count_);
  // The last shard whose first document is not after `number`; shards in which none begins share their successor's number.
  const auto after = std::ranges::upper_bound(shards_, number, {}, [](const Shard& s) { return s.header().first_document; });
  const Shard& shard = *(after - 1);
  return shard.header().first_token + shard.document_starts()[number - shard.header().first_document];
}

std::uint64_t Dataset::document_at(std::uint64_t token) const {
  check(token < token_count_, "dataset '{}': token {} is wanted, there are {}", folder_, token, token_count_);
  const Shard& shard = *(std::ranges::upper_bound(shards_, token, {}, [](const Shard& s) { return s.header().first_token; }) - 1);
  const auto starts = shard.document_starts();
  const auto after = std::ranges::upper_bound(starts, token - shard.header().first_token);
  return shard.header().first_document + std::uint64_t(after - starts.begin()) - 1;  // the first shard begins with a document
}

void Dataset::read(std::uint64_t first, std::span<std::int32_t> out) const { read_shards(&Shard::read, first, out); }
void Dataset::read_targets(std::uint64_t first, std::span<std::int32_t> out) const { read_shards(&Shard::read_targets, first, out); }

void Dataset::read_shards(Read read, std::uint64_t first, std::span<std::int32_t> out) const {
  check(first <= token_count_ && out.size() <= token_count_ - first, "dataset '{}': tokens {} to {} are wanted, there are {}", folder_,
        first, first + out.size(), token_count_);
  auto shard = std::ranges::upper_bound(shards_, first, {}, [](const Shard& s) { return s.header().first_token; }) - 1;
  for (; !out.empty(); ++shard) {
    const std::uint64_t inside = first - shard->header().first_token;
    const auto n = std::size_t(std::min<std::uint64_t>(out.size(), shard->header().token_count - inside));
    ((*shard).*read)(inside, out.first(n));
    out = out.subspan(n), first += n;
  }
}

Checksum Dataset::fingerprint() const {
  std::string identities;
  for (const Shard& shard : shards_) identities += to_text(shard.identity());
  return checksum_of(identities);
}

void require_vocabulary(const Dataset& dataset, std::int64_t vocab_size, std::string_view key) {
  if (vocab_size >= dataset.vocab_size()) return;
  const std::string larger = key.empty() ? "" : format("set {} to at least {} or ", key, dataset.vocab_size());
  throw ConfigError(
      format("{}: '{}' has token ids up to {} (tokenizer '{}'), the model's vocabulary has {}; {}tokenize with the model's tokenizer",
             dataset.key(), printable(dataset.folder()), dataset.vocab_size() - 1, printable(dataset.tokenizer()), vocab_size, larger));
}

void require_same_tokenizer(const Dataset& training, const Dataset& evaluation) {
  if (training.tokenizer() == evaluation.tokenizer() && training.vocab_size() == evaluation.vocab_size()) return;
  throw ConfigError(format("{}: '{}' was made by the tokenizer '{}' of {} ids, and {} '{}' by '{}' of {}; tokenize both with the same one",
                           evaluation.key(), printable(evaluation.folder()), printable(evaluation.tokenizer()), evaluation.vocab_size(),
                           training.key(), printable(training.folder()), printable(training.tokenizer()), training.vocab_size()));
}

}  // namespace octet::data
