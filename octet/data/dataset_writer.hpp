#pragma once

#include <map>
#include <string>
#include <vector>

#include "octet/base/descriptor.hpp"
#include "octet/data/manifest.hpp"
#include "octet/data/shard_builder.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// Writes a dataset into a folder that may already have one. Shards have their checksum in their names, so old and new ones never collide.
/// The manifest is replaced in one step.
class DatasetWriter {
 public:
  /// Creates the folder and locks it against a second writer. Throws ConfigError when it contains a dataset and `force` is false, IoError
  /// when the system refuses or another writer has the lock.
  DatasetWriter(const std::string& folder, bool force);
  /// Without a commit(), the shards that were added are removed again.
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  /// The tokenizer's files, tokenizer.json and tokenizer_config.json where it has them, which commit() writes into the folder; those of an
  /// earlier dataset are removed. `path`: the tokenizer.json, or its folder. Throws IoError, DataError.
  void set_tokenizer(const tokenizer::Tokenizer& tokenizer, const std::string& path);
  /// Writes the next shard, durably. Throws IoError.
  void add(const ShardBuilder::Finished& shard);
  /// Puts the manifest in place and removes the shards of earlier datasets. Throws IoError.
  const Manifest& commit();

 private:
  void remove_other_shards() const;
  bool remove_other_files() const;
  void write_files() const;

  std::string folder_;
  Descriptor lock_;
  Manifest manifest_;
  std::map<std::string, std::string> files_;  // of the tokenizer: name -> bytes
  std::vector<std::string> uncommitted_;      // paths of shards that were not there before
};

}  // namespace octet::data
