#include "octet/data/split.hpp"

#include <algorithm>
#include <cmath>

#include "octet/data/dataset.hpp"

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::data {
namespace {

/// max(1, floor(fraction * n)), at most n - 1. The small addend mends products such as 0.29 * 100 = 28.999999999999996.
std::uint64_t held_out_count(double fraction, std::uint64_t n) {
  const auto wanted = std::uint64_t(std::floor(fraction * double(n) * (1 + 0x1p-50)));
  return std::min(std::max<std::uint64_t>(wanted, 1), n - 1);
}

}  // namespace

Split split_documents(const Dataset& dataset, double fraction) {
  if (!(fraction >= 0 && fraction < 1))
    throw ConfigError(format("data.eval_fraction must be at least 0 and below 1, got {}; 0.01 holds out the last 1% of the documents", fraction));
  const std::uint64_t documents = dataset.document_count(), tokens = dataset.token_count();
  std::uint64_t border = tokens;
  if (fraction > 0)
    border = documents > 1 ? dataset.document_start(documents - held_out_count(fraction, documents)) : tokens - held_out_count(fraction, tokens);
  return {{0, border}, {border, tokens}};
}

}  // namespace octet::data
