#pragma once

#include <memory>

#include "octet/data/batch.hpp"
#include "octet/data/split.hpp"

namespace octet::data {

/// Whether attention and positions end at the borders of documents.
enum class Documents : std::uint8_t { joined, masked };

/// Contents of rows of batches: windows of a text (Windows), or pairs of answers (PairRows). The dataset behind it must outlive it.
/// Const calls are thread-safe.
class Samples {
 public:
  virtual ~Samples() = default;
  virtual std::uint64_t count() const = 0;
  /// Tokens of a row.
  virtual std::int64_t length() const = 0;
  virtual Documents documents() const = 0;
  /// PairsOfBatch::per_row.
  virtual std::int64_t pairs_per_row() const { return 0; }
  /// Writes sample `number` < count() to a batch's row. Throws DataError as Shard::read does.
  virtual void read(std::uint64_t number, Batch&, std::int64_t row) const = 0;
};

/// A batch of so many rows with storage for samples of that kind.
Batch batch_for(const Samples&, std::int64_t rows);

/// Those of a dataset's token ranges: PairRows of a dataset with pairs, else Windows. `part`, errors: as these. `first_pair`: the number
/// of the dataset's first pair.
std::shared_ptr<const Samples> samples_of(const Dataset&, TokenRanges, std::int64_t length, const char* part, Documents,
                                          std::int64_t first_pair = 0);

}  // namespace octet::data
