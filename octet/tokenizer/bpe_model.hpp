#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/merge_table.hpp"

namespace octet::tokenizer {

/// Byte pair encoding: a part of the text begins as its characters, and the pair of neighbours with the lowest rank is merged until none
/// has one; of equal ranks the leftmost first. Source: Sennrich et al. 2016, as PyPI `tokenizers` implements it. Const calls are
/// thread-safe.
class BpeModel {
 public:
  /// Memory of one thread at a time.
  struct Scratch {
    std::vector<std::int32_t> ids, next, previous;
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint64_t> heap;
  };

  /// The object "model" of tokenizer.json. `byte_level`: the characters of a part are its bytes. Throws DataError for an unsupported type
  /// or key, ids that occur twice, and merges of tokens that are not in the vocabulary.
  BpeModel(const json::Fields& fields, bool byte_level);

  /// Appends the ids of a part that is not empty.
  void encode(std::string_view part, std::vector<std::int32_t>& ids, Scratch&) const;

  /// The id of a token as the file writes it.
  const std::int32_t* find(std::string_view token) const;
  const std::unordered_map<std::string, std::int32_t>& vocabulary() const { return ids_; }
  std::size_t merges() const { return merge_count_; }
  bool byte_level() const { return byte_level_; }
  bool byte_fallback() const { return byte_fallback_; }
  /// Whether the text can be divided before each `mark` that another character precedes: `mark` is a token, and no token has it there.
  bool divides_before(std::string_view mark) const;

 private:
  void read_vocabulary(const json::Fields& fields);
  void read_merges(const json::Fields& fields);
  void add_merge(const json::Fields& fields, std::string_view left, std::string_view right, std::uint32_t rank);
  void begin(std::string_view part, std::vector<std::int32_t>& ids) const;
  bool begin_bytes(std::string_view character, std::vector<std::int32_t>& ids) const;
  void merge_few(std::vector<std::int32_t>& ids, Scratch&) const;
  void merge_many(std::vector<std::int32_t>& ids, Scratch&) const;

  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::string, std::int32_t> parts_;  // byte level with ignore_merges: tokens as bytes
  MergeTable merges_;
  std::size_t merge_count_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};  // byte level: ids of single bytes; else of the tokens <0x00> to <0xFF>; -1: none
  std::int32_t unknown_ = -1;
  bool byte_level_, byte_fallback_ = false, fuse_unknown_ = false, ignore_merges_ = false;
};

}  // namespace octet::tokenizer
