#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/checksum.hpp"

namespace octet::data {

/// The `dataset.toml` of a dataset folder: which shards, in which order, make up the token stream. It is written last, so a folder
/// has it exactly when its dataset is complete. A small subset of TOML, described in docs/token-format.md.
struct Manifest {
  static constexpr std::uint64_t format_version = 1;
  static constexpr const char* file_name = "dataset.toml";

  struct Entry {
    std::string file;  // in the same folder
    std::uint64_t tokens = 0, documents = 0;
    std::string checksum;  // XXH3-128 of the shard's header, as hexadecimal digits
  };

  std::string tokenizer;
  std::uint64_t vocab_size = 0, tokens = 0, documents = 0;
  std::vector<Entry> shards;
};

/// `folder`/dataset.toml, which the configuration's `key` names. Throws ConfigError when there is no such folder or file, DataError (file,
/// line, expected value) when something is missing, unknown, twice, of the wrong type, or names a file outside the folder, or when the sums
/// do not agree.
Manifest read_manifest(const std::string& folder, const std::string& key = "data.path");

/// Puts the manifest into `folder` in one step: a reader sees the old one or the new one. Throws IoError.
void write_manifest(const std::string& folder, const Manifest&);

}  // namespace octet::data
