#include "octet/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "octet/data/dataset.hpp"

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::data {
namespace {

/// max(1, floor(fraction * n)), at most n - 1. The small addend corrects products such as 0.29 * 100 = 28.999999999999996.
std::uint64_t held_out_count(double fraction, std::uint64_t n) {
  const auto wanted = std::uint64_t(std::floor(fraction * double(n) * (1 + 0x1p-50)));
  return std::min(std::max<std::uint64_t>(wanted, 1), n - 1);
}

constexpr std::uint64_t split_key = 0x6f63746574;  // of the hash of a document's number

/// Which documents are held out: the `count` whose numbers have the smallest hashes.
std::vector<bool> chosen(std::uint64_t documents, std::uint64_t count) {
  const auto hash = [](std::uint64_t number) {
    const RandomWords r = philox(split_key, number);
    return std::pair(std::uint64_t(r.w[0]) << 32 | r.w[1], number);
  };
  std::vector<std::uint64_t> order(documents);
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + std::ptrdiff_t(count), order.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return hash(a) < hash(b); });
  std::vector<bool> out(documents);
  for (std::uint64_t i = 0; i < count; ++i) out[order[i]] = true;
  return out;
}

/// Adds a range behind the last, to which it is joined where they touch.
void add(TokenRanges& ranges, const TokenRange& range) {
  if (range.size() == 0) return;
  if (!ranges.empty() && ranges.back().end == range.begin) ranges.back().end = range.end;
  else ranges.push_back(range);
}

}  // namespace

Split split_documents(const Dataset& dataset, double fraction) {
  if (!(fraction >= 0 && fraction < 1))
    throw ConfigError(format("data.eval_fraction must be at least 0 and below 1, got {}; 0.01 holds out 1% of the documents", fraction));
  const std::uint64_t each = dataset.has_pairs() ? 2 : 1;
  const std::uint64_t documents = dataset.document_count() / each, tokens = dataset.token_count();
  Split split;
  if (fraction == 0 || documents <= 1) {
    const std::uint64_t border = fraction == 0 || dataset.has_pairs() ? tokens : tokens - held_out_count(fraction, tokens);
    add(split.train, {0, border}), add(split.held_out, {border, tokens});
    return split;
  }
  const std::vector<bool> held_out = chosen(documents, held_out_count(fraction, documents));
  for (std::uint64_t i = 0; i < documents; ++i) {
    const std::uint64_t begin = i == 0 ? 0 : dataset.document_start(each * i),
                        end = i + 1 < documents ? dataset.document_start(each * (i + 1)) : tokens;
    add(held_out[i] ? split.held_out : split.train, {begin, end});
  }
  return split;
}

}  // namespace octet::data
