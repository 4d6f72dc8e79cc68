#pragma once

#include "octet/data/samples.hpp"

namespace octet::data {

/// Pairs of answers in rows of `length` tokens. A dataset with pairs has two documents for each: the chosen answer behind its question,
/// then the rejected one. Both are in one row, side by side with other pairs, each document apart from the others. A pair goes to the first
/// row with room among the last ones, so rows depend on the dataset and the length alone. The end of a row is padding: token 0, of which
/// nothing is learned.
class PairRows final : public Samples {
 public:
  /// Entries of a row for its pairs.
  static constexpr std::int64_t most_pairs(std::int64_t length) { return length < 64 ? 4 : length / 16; }

  /// Throws ConfigError when documents are joined, and when the ranges hold no pair that fits in a row; `part` names them in the message.
  /// Keeps a reference to the dataset.
  PairRows(const Dataset&, const TokenRanges&, std::int64_t length, const char* part, Documents, std::int64_t first_pair = 0);

  std::uint64_t count() const override { return rows_.size(); }
  std::int64_t length() const override { return length_; }
  Documents documents() const override { return Documents::masked; }
  std::int64_t pairs_per_row() const override { return most_pairs(length_); }
  void read(std::uint64_t number, Batch&, std::int64_t row) const override;

  /// Pairs that are in rows, and those that are longer than a row, which are left out.
  std::int64_t pairs() const { return pairs_; }
  std::int64_t too_long() const { return too_long_; }

 private:
  using Row = std::vector<std::uint64_t>;  // numbers of pairs in the dataset
  void place(std::uint64_t pair, std::int64_t tokens, std::vector<std::int64_t>& used);

  const Dataset* dataset_;
  std::int64_t length_, first_pair_;
  std::int64_t pairs_ = 0, too_long_ = 0;
  std::vector<Row> rows_;
};

}  // namespace octet::data
