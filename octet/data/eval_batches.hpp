#pragma once

#include <cstdint>
#include <memory>

#include "octet/data/windows.hpp"

namespace octet::data {

/// The batches of one evaluation, the same at every step and in every run: all samples in the order of the text, or where that is more
/// than `max_tokens`, as many samples as hold these, evenly spread over it. Which tokens are read does not depend on `rows`.
class EvalBatches {
 public:
  /// `max_tokens`: rounded up to whole samples; 0 = no limit. The dataset behind them must outlive this.
  EvalBatches(const Windows& windows, std::int64_t rows, std::int64_t max_tokens)
      : EvalBatches(std::make_shared<Windows>(windows), rows, max_tokens) {}
  EvalBatches(std::shared_ptr<const Samples>, std::int64_t rows, std::int64_t max_tokens);

  std::uint64_t size() const;
  /// Batch `number` < size(). Only the last may have fewer rows. Throws DataError as Shard::read does.
  Batch operator[](std::uint64_t number) const;

 private:
  std::shared_ptr<const Samples> all_;
  std::uint64_t rows_, samples_;  // of a batch, and those that are shown
};

/// Throws ConfigError when the batches have no target, as those of conversations whose windows end before an answer: there is no loss then.
/// `part` names them in the message ("held-out").
void require_targets(const EvalBatches&, const Dataset&, const char* part);

}  // namespace octet::data
