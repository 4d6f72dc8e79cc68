#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/data/split.hpp"

namespace octet::data {

/// The input of one forward pass. Row r predicts targets[r * length + t] from inputs[r * length .. r * length + t].
struct Batch {
  std::int64_t rows = 0, length = 0;
  std::uint64_t first_sample = 0;             // number of row 0 in its order; later rows are numbered consecutively
  std::vector<std::int32_t> inputs, targets;  // [rows, length]; targets are the inputs one token later, or -1
  bool document_mask = false;                 // document_starts is filled
  std::vector<std::int32_t> document_starts;  // [rows, length]: the place in its row at which a token's document begins, 0 if before it

  /// Storage for `rows` rows.
  void resize();
};

/// Whether attention and positions end at the borders of documents.
enum class Documents : std::uint8_t { joined, masked };

/// A text, read from token ranges as one stream, cut into windows of `length` + 1 tokens, each beginning at its predecessor's last token,
/// so that every token but the text's first is a target once; the tokens after the last whole window are left out. If documents are masked,
/// the first token of a document is the target of none: -1 takes its place. So it does for tokens that the dataset marks as no targets.
class Windows {
 public:
  /// Throws ConfigError when `length` < 1 or when the ranges hold no whole window; `part` names them in the message
  /// ("training", "held-out"), or where the dataset has marks and documents are joined. Keeps a reference to the dataset.
  Windows(const Dataset&, TokenRanges, std::int64_t length, const char* part, Documents = Documents::joined);

  std::uint64_t count() const { return (size_ - 1) / std::uint64_t(length_); }
  std::int64_t length() const { return length_; }
  Documents documents() const { return documents_; }
  /// Writes window `number` < count() to a batch's row: its tokens 0 .. length-1 to inputs, 1 .. length to targets. Throws DataError as
  /// Shard::read does.
  void read(std::uint64_t number, Batch&, std::int64_t row) const;

 private:
  using Read = void (Dataset::*)(std::uint64_t, std::span<std::int32_t>) const;
  void copy(Read, std::uint64_t first, std::span<std::int32_t> out) const;
  void mask_documents(std::uint64_t first, std::int32_t* targets, std::int32_t* starts) const;

  const Dataset* dataset_;
  TokenRanges ranges_;
  std::vector<std::uint64_t> starts_;  // of each range in the text
  std::uint64_t size_ = 0;             // tokens of the text
  std::int64_t length_;
  Documents documents_;
};

}  // namespace octet::data
