#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/error.hpp"
#include "octet/data/dataset.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/numerics/philox.hpp"
#include "tests/testing/scratch.hpp"

// Small corpora for tests of this level.

namespace octet::data {

using testing::bytes_of;
using testing::error_of;
using testing::has;
using testing::Scratch;

/// `bytes` bytes of every value but 0, which no text has, the same for one seed.
inline std::string noise(std::size_t bytes, std::uint64_t seed) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += char(1 + philox(seed, i).w[0] % 255);
  return text;
}

/// Files text/0000.txt ... with these texts.
inline void write_corpus(const Scratch& scratch, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string digits = std::to_string(i);
    scratch.write("text/" + std::string(4 - digits.size(), '0') + digits + ".txt", texts[i]);
  }
}

/// `documents` texts of uneven length, `least` bytes or a few more.
inline std::vector<std::string> some_texts(std::size_t documents, std::size_t least = 20) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < documents; ++i) texts.push_back(noise(least + i * 7 % 23, i));
  return texts;
}

/// A dataset folder "data" of these texts, in shards of at most `shard_bytes`.
inline std::string make_dataset(const Scratch& scratch, const std::vector<std::string>& texts, std::uint64_t shard_bytes = 1 << 20) {
  write_corpus(scratch, texts);
  TokenizeOptions options;
  options.any_bytes = true;
  options.shard_bytes = shard_bytes, options.threads = 1;
  tokenize({scratch.at("text/*.txt")}, scratch.at("data"), options);
  return scratch.at("data");
}

/// The whole token stream of byte-tokenized texts.
inline std::vector<std::int32_t> stream_of(const std::vector<std::string>& texts) {
  std::vector<std::int32_t> ids;
  for (const std::string& text : texts) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    ids.push_back(256);
  }
  return ids;
}

inline std::vector<std::int32_t> all_tokens(const Dataset& dataset) {
  std::vector<std::int32_t> ids(dataset.token_count());
  dataset.read(0, ids);
  return ids;
}

/// The path of shard `number` of a dataset.
inline std::string shard_path(const std::string& folder, std::size_t number) { return Dataset(folder).shards()[number].path(); }

/// Puts another file at `path`. A new one, since some file systems sync a file that is cut and written again.
inline void replace_file(const std::string& path, std::string_view bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace octet::data
