#include "octet/data/eval_batches.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/dataset.hpp"

namespace octet::data {

EvalBatches::EvalBatches(std::shared_ptr<const Samples> all, std::int64_t rows, std::int64_t max_tokens)
    : all_(std::move(all)), rows_(std::uint64_t(rows)), samples_(all_->count()) {
  check(rows >= 1, "evaluation: a batch must have at least 1 row, got {}", rows);
  check(max_tokens >= 0, "evaluation: the limit must be 0 (none) or more tokens, got {}", max_tokens);
  if (max_tokens > 0)
    samples_ = std::min(samples_, (std::uint64_t(max_tokens) + std::uint64_t(all_->length()) - 1) / std::uint64_t(all_->length()));
}

std::uint64_t EvalBatches::size() const { return (samples_ + rows_ - 1) / rows_; }

Batch EvalBatches::operator[](std::uint64_t number) const {
  check(number < size(), "evaluation: batch {} is wanted, there are {}", number, size());
  Batch batch = batch_for(*all_, std::int64_t(std::min(rows_, samples_ - number * rows_)));
  batch.first_sample = number * rows_;
  // floor(s * count / samples) without a product that could overflow.
  const std::uint64_t step = all_->count() / samples_, rest = all_->count() % samples_;
  for (std::int64_t r = 0; r < batch.rows; ++r) {
    const std::uint64_t sample = batch.first_sample + std::uint64_t(r);
    all_->read(sample * step + sample * rest / samples_, batch, r);
  }
  return batch;
}

void require_targets(const EvalBatches& batches, const Dataset& dataset, const char* part) {
  for (std::uint64_t i = 0; i < batches.size(); ++i)
    if (batches[i].counted() > 0) return;
  throw ConfigError(
      format("the {} part of '{}' has no targets, so it has no loss: its windows end before an answer; raise data.eval_fraction (eval: "
             "--held-out) or data.sequence_length (eval: --sequence)",
             part, printable(dataset.folder())));
}

}  // namespace octet::data
