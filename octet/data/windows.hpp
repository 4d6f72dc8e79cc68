#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/data/samples.hpp"

namespace octet::data {

/// A text, read from token ranges as one stream, cut into windows of `length` + 1 tokens, each beginning at its predecessor's last token,
/// so that every token but the text's first is a target once; the tokens after the last whole window are left out. If documents are masked,
/// the first token of a document is the target of none: -1 takes its place. So it does for tokens that the dataset marks as no targets.
class Windows final : public Samples {
 public:
  /// Throws ConfigError when `length` < 1 or when the ranges hold no whole window; `part` names them in the message
  /// ("training", "held-out"), where the dataset has marks and documents are joined, or where it has pairs of answers. Keeps a reference to
  /// the dataset.
  Windows(const Dataset&, TokenRanges, std::int64_t length, const char* part, Documents = Documents::joined);

  std::uint64_t count() const override { return (size_ - 1) / std::uint64_t(length_); }
  std::int64_t length() const override { return length_; }
  Documents documents() const override { return documents_; }
  /// Writes window `number` < count() to a batch's row: its tokens 0 .. length-1 to inputs, 1 .. length to targets. Throws DataError as
  /// Shard::read does.
  void read(std::uint64_t number, Batch&, std::int64_t row) const override;

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
