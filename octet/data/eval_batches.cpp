#include "octet/data/eval_batches.hpp"

#include <algorithm>

#include "octet/base/check.hpp"

namespace octet::data {

EvalBatches::EvalBatches(const Windows& windows, std::int64_t rows, std::int64_t max_tokens)
    : windows_(windows), rows_(std::uint64_t(rows)), samples_(windows.count()) {
  check(rows >= 1, "evaluation: a batch must have at least 1 row, got {}", rows);
  check(max_tokens >= 0, "evaluation: the limit must be 0 (none) or more tokens, got {}", max_tokens);
  if (max_tokens > 0)
    samples_ = std::min(samples_, (std::uint64_t(max_tokens) + std::uint64_t(windows.length()) - 1) / std::uint64_t(windows.length()));
}

std::uint64_t EvalBatches::size() const { return (samples_ + rows_ - 1) / rows_; }

Batch EvalBatches::operator[](std::uint64_t number) const {
  check(number < size(), "evaluation: batch {} is wanted, there are {}", number, size());
  Batch batch;
  batch.first_sample = number * rows_;
  batch.rows = std::int64_t(std::min(rows_, samples_ - batch.first_sample)), batch.length = windows_.length();
  batch.document_mask = windows_.documents() == Documents::masked;
  batch.resize();
  // floor(s * count / samples) without a product that could overflow.
  const std::uint64_t step = windows_.count() / samples_, rest = windows_.count() % samples_;
  for (std::int64_t r = 0; r < batch.rows; ++r) {
    const std::uint64_t sample = batch.first_sample + std::uint64_t(r);
    windows_.read(sample * step + sample * rest / samples_, batch, r);
  }
  return batch;
}

}  // namespace octet::data
