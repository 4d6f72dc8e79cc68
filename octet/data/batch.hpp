#pragma once

#include <cstdint>
#include <vector>

namespace octet::data {

/// Places of pairs of answers in a batch. Each row has as many entries, of which the last ones may be unused.
struct PairsOfBatch {
  std::int64_t per_row = 0;           // entries; 0: the batch is one of text
  std::vector<std::int32_t> places;   // [rows, per_row, 4]: begin and end of the chosen and of the rejected answer among all tokens
  std::vector<std::int64_t> numbers;  // [rows, per_row]: of each pair among all that a run has; -1 where there is none
  std::vector<double> references;     // [rows, per_row, 2]: log-probabilities of a reference; NaN where not known
  std::int64_t count() const;         // of pairs
};

/// The input of one forward pass. Row r predicts targets[r * length + t] from inputs[r * length .. r * length + t].
struct Batch {
  std::int64_t rows = 0, length = 0;
  std::uint64_t first_sample = 0;             // number of row 0 in its order; later rows are numbered consecutively
  std::vector<std::int32_t> inputs, targets;  // [rows, length]; targets are the inputs one token later, or -1
  bool document_mask = false;                 // document_starts is filled
  std::vector<std::int32_t> document_starts;  // [rows, length]: the place in its row at which a token's document begins, 0 if before it
  PairsOfBatch pairs;                         // with document_mask: the documents are answers

  /// Storage for `rows` rows.
  void resize();
  /// Terms of the mean loss: pairs, or tokens with a target.
  std::int64_t counted() const;
};

}  // namespace octet::data
