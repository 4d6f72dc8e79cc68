#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/data/token_format.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// Collects a token stream and cuts it into the bytes of shards, none above a given size; a document may continue in the next shard.
class ShardBuilder {
 public:
  static constexpr std::uint64_t least_shard_bytes = 1024;

  /// `shard_bytes` >= least_shard_bytes bounds the size of every shard's file. `marks_context`: ids may have a context_mark;
  /// `has_pairs`: with these, documents are pairs of answers.
  ShardBuilder(const tokenizer::Tokenizer& tokenizer, std::uint64_t shard_bytes, bool marks_context = false, bool has_pairs = false);

  /// The next token begins a document.
  void begin_document() { document_pending_ = true; }
  /// Stores as many of `ids` as fit and returns their number. If that is below ids.size(), the shard is full: call finish() and continue.
  std::size_t append(std::span<const std::int32_t> ids);
  bool empty() const { return header_.token_count == 0; }

  struct Finished {
    std::string bytes;
    ShardHeader header;
  };
  /// The whole file of the tokens since the last finish(); the next shard begins empty where this one ends.
  Finished finish();

 private:
  std::uint64_t room() const;

  std::uint64_t shard_bytes_;
  ShardHeader header_;
  bool document_pending_ = false;
  std::string bytes_;
  std::vector<std::uint64_t> documents_;
};

}  // namespace octet::data
