#include "octet/data/pair_rows.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/data/dataset.hpp"

namespace octet::data {
namespace {

constexpr std::size_t open_rows = 64;  // the last rows, in which there may be room

std::uint64_t document_end(const Dataset& d, std::uint64_t number) {
  return number + 1 < d.document_count() ? d.document_start(number + 1) : d.token_count();
}
// Of a document, but its last token, after which nothing is predicted.
std::int64_t tokens_of(const Dataset& d, std::uint64_t document) {
  return std::int64_t(document_end(d, document) - d.document_start(document)) - 1;
}

}  // namespace

PairRows::PairRows(const Dataset& dataset, const TokenRanges& ranges, std::int64_t length, const char* part, Documents documents,
                   std::int64_t first_pair)
    : dataset_(&dataset), length_(length), first_pair_(first_pair) {
  if (documents == Documents::joined)
    throw ConfigError(format("{}: '{}' has pairs of answers, which lie side by side in a sequence; set data.document_mask = true",
                             dataset.key(), printable(dataset.folder())));
  std::vector<std::int64_t> used;
  std::int64_t longest = 0;
  for (const TokenRange& range : ranges)
    for (std::uint64_t pair = dataset.document_at(range.begin) / 2;
         2 * pair < dataset.document_count() && dataset.document_start(2 * pair) < range.end; ++pair) {
      const std::int64_t tokens = tokens_of(dataset, 2 * pair) + tokens_of(dataset, 2 * pair + 1);
      longest = std::max(longest, tokens);
      place(pair, tokens, used);
    }
  if (pairs_ > 0) return;
  if (too_long_ == 0)
    throw ConfigError(format("the {} part of '{}' has no pairs; set data.eval_fraction above 0 or tokenize more pairs", part,
                             printable(dataset.folder())));
  throw ConfigError(
      format("data.sequence_length = {}: all {} pairs of the {} part of '{}' are longer; a sequence has both answers of a pair with their "
             "question, "
             "and the longest needs {}",
             length, too_long_, part, printable(dataset.folder()), longest));
}

void PairRows::place(std::uint64_t pair, std::int64_t tokens, std::vector<std::int64_t>& used) {
  if (tokens > length_) return void(++too_long_);
  ++pairs_;
  std::size_t row = rows_.size() - std::min(rows_.size(), open_rows);
  while (row < rows_.size() && (used[row] + tokens > length_ || std::int64_t(rows_[row].size()) == most_pairs(length_))) ++row;
  if (row == rows_.size()) rows_.emplace_back(), used.push_back(0);
  rows_[row].push_back(pair), used[row] += tokens;
}

void PairRows::read(std::uint64_t number, Batch& batch, std::int64_t row) const {
  check(number < count(), "pairs: row {} is wanted, there are {}", number, count());
  const std::int64_t first = row * length_, entry = row * pairs_per_row();
  std::int64_t at = 0;  // in the row
  const auto add = [&](std::uint64_t document, std::int32_t* places) {
    const auto n = std::size_t(tokens_of(*dataset_, document));
    const std::uint64_t from = dataset_->document_start(document);
    dataset_->read(from, {batch.inputs.data() + first + at, n});
    dataset_->read_targets(from + 1, {batch.targets.data() + first + at, n});
    std::fill_n(batch.document_starts.begin() + first + at, n, std::int32_t(at));
    places[0] = std::int32_t(first + at), places[1] = std::int32_t(first + at + std::int64_t(n));
    at += std::int64_t(n);
  };
  const Row& pairs = rows_[number];
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::int32_t* const places = batch.pairs.places.data() + 4 * (entry + std::int64_t(i));
    add(2 * pairs[i], places), add(2 * pairs[i] + 1, places + 2);
    batch.pairs.numbers[std::size_t(entry) + i] = first_pair_ + std::int64_t(pairs[i]);
  }
  const auto left = length_ - at;
  std::fill_n(batch.inputs.begin() + first + at, left, 0), std::fill_n(batch.targets.begin() + first + at, left, -1);
  std::fill_n(batch.document_starts.begin() + first + at, left, std::int32_t(at));
}

}  // namespace octet::data
