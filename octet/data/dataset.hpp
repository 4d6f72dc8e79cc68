#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/data/shard.hpp"

namespace octet::data {

/// A dataset folder opened for reading: its shards joined to one token stream. Const calls are thread-safe.
class Dataset {
 public:
  /// Opens and checks the manifest and every shard. `key`: the configuration's key that names the folder, for messages. Throws ConfigError
  /// when `folder` is not a dataset, DataError (file, place, remedy) at a missing, truncated, damaged, swapped or foreign shard, IoError
  /// when the system refuses.
  explicit Dataset(const std::string& folder, Verify = Verify::everything, const std::string& key = "data.path");

  const std::string& folder() const { return folder_; }
  const std::string& key() const { return key_; }
  const std::string& tokenizer() const { return shards_.front().header().tokenizer; }
  std::int32_t vocab_size() const { return std::int32_t(shards_.front().header().vocab_size); }
  std::uint64_t token_count() const { return token_count_; }
  std::uint64_t document_count() const { return document_count_; }
  std::span<const Shard> shards() const { return shards_; }

  /// The token of the stream at which document `number` < document_count() begins.
  std::uint64_t document_start(std::uint64_t number) const;
  /// The number of the document in which token `token` < token_count() of the stream lies.
  std::uint64_t document_at(std::uint64_t token) const;
  /// Copies tokens [first, first + out.size()) of the stream to `out`, over the borders of shards. Throws DataError as Shard::read does.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;
  /// Checksum of every byte of the dataset. A run stores it, and a resumed run compares it.
  Checksum fingerprint() const;

 private:
  std::string folder_, key_;
  std::vector<Shard> shards_;
  std::uint64_t token_count_ = 0, document_count_ = 0;
};

/// Throws ConfigError when the dataset has ids beyond the `vocab_size` rows of a model's embedding.
void require_vocabulary(const Dataset&, std::int64_t vocab_size);
/// Throws ConfigError when the two datasets of a run, for training and for evaluation, come from different tokenizers.
void require_same_tokenizer(const Dataset& training, const Dataset& evaluation);

}  // namespace octet::data
