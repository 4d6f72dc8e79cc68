#include "octet/data/samples.hpp"

#include "octet/data/dataset.hpp"
#include "octet/data/pair_rows.hpp"
#include "octet/data/windows.hpp"

namespace octet::data {

Batch batch_for(const Samples& samples, std::int64_t rows) {
  Batch out;
  out.rows = rows, out.length = samples.length();
  out.document_mask = samples.documents() == Documents::masked;
  out.pairs.per_row = samples.pairs_per_row();
  out.resize();
  return out;
}

std::shared_ptr<const Samples> samples_of(const Dataset& dataset, TokenRanges ranges, std::int64_t length, const char* part,
                                          Documents documents, std::int64_t first_pair) {
  if (dataset.has_pairs()) return std::make_shared<PairRows>(dataset, ranges, length, part, documents, first_pair);
  return std::make_shared<Windows>(dataset, std::move(ranges), length, part, documents);
}

}  // namespace octet::data
