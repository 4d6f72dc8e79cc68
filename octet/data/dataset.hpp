#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/data/shard.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// A dataset folder opened for reading: its shards joined to one token stream. Const calls are thread-safe.
class Dataset {
 public:
  /// Opens and checks the manifest and every shard. `key`: the configuration's key that names the folder, for messages. Throws ConfigError
  /// when `folder` is not a dataset, DataError (file, place, remedy) at a missing, truncated, damaged, swapped or foreign shard, IoError
  /// when the system refuses.
  /// A path that ends with ".bin" names files of another program (foreign_tokens.hpp), also by a pattern, in the order of their names. They
  /// have the tokenizer of a tokenizer.json beside them, or an unknown one.
  explicit Dataset(const std::string& folder, Verify = Verify::everything, const std::string& key = "data.path");

  const std::string& folder() const { return folder_; }
  const std::string& key() const { return key_; }
  /// The identity of the tokenizer: Tokenizer::name().
  const std::string& tokenizer() const { return shards_.front().header().tokenizer; }
  std::int32_t vocab_size() const { return std::int32_t(shards_.front().header().vocab_size); }
  /// Whether tokens of it are no targets, such as those of questions.
  bool marks_context() const { return shards_.front().header().marks_context; }
  /// Whether its documents are pairs of answers, the chosen one before the rejected one.
  bool has_pairs() const { return shards_.front().header().has_pairs; }
  std::uint64_t token_count() const { return token_count_; }
  std::uint64_t document_count() const { return document_count_; }
  std::span<const Shard> shards() const { return shards_; }

  /// The token of the stream at which document `number` < document_count() begins.
  std::uint64_t document_start(std::uint64_t number) const;
  /// The number of the document in which token `token` < token_count() of the stream lies.
  std::uint64_t document_at(std::uint64_t token) const;
  /// Copies tokens [first, first + out.size()) of the stream to `out`, over the borders of shards. Throws DataError as Shard::read does.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;
  /// The same with -1 for tokens that are no targets.
  void read_targets(std::uint64_t first, std::span<std::int32_t> out) const;
  /// The dataset's tokenizer, from the tokenizer.json in its folder. Throws DataError when the file is missing or that of another
  /// tokenizer.
  std::unique_ptr<const tokenizer::Tokenizer> open_tokenizer() const;
  /// Checksum of every byte of the dataset. A run stores it, and a resumed run compares it.
  Checksum fingerprint() const;

 private:
  void open_own(Verify);
  void open_foreign(const std::string& files);
  using Read = void (Shard::*)(std::uint64_t, std::span<std::int32_t>) const;
  void read_shards(Read, std::uint64_t first, std::span<std::int32_t> out) const;

  std::string folder_, key_;
  std::vector<Shard> shards_;
  std::uint64_t token_count_ = 0, document_count_ = 0;
};

/// The tokenizer of this identity: "byte", or the one of the tokenizer.json in `folder`. Throws DataError when the file is missing or that
/// of another tokenizer.
std::unique_ptr<const tokenizer::Tokenizer> open_tokenizer_of(const std::string& identity, const std::string& folder);

/// Throws the DataError of open_tokenizer_of() unless `source` is the text of that tokenizer.json, which `folder` has; null: it has none.
void require_tokenizer_of(const std::string& identity, const std::string& folder, const std::string* source);

/// Throws ConfigError when the model's folder has a tokenizer.json that is not the dataset's. False when the folder has none, so that its
/// tokenizer is unknown; a model with the vocabulary of the byte tokenizer has that one.
bool require_same_tokenizer(const Dataset&, const std::string& model_folder, std::int64_t model_vocabulary);

/// Throws ConfigError when the dataset has ids beyond the `vocab_size` rows of a model's embedding. `key`: by which the user may give the
/// model more rows; "" for one that has its weights.
void require_vocabulary(const Dataset&, std::int64_t vocab_size, std::string_view key = "");
/// Throws ConfigError when the two datasets of a run, for training and for evaluation, come from different tokenizers.
void require_same_tokenizer(const Dataset& training, const Dataset& evaluation);

}  // namespace octet::data
