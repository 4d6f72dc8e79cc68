#include "octet/data/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "octet/base/check.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/permutation.hpp"

namespace octet::data {
namespace {

Share parse_share(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto share = colon == std::string::npos || colon == 0 ? std::nullopt : parse_number(text.substr(colon + 1));
  if (!share || !(*share > 0 && *share < 1))
    throw ConfigError(format("data.mix: \"{}\" must be PATH:SHARE with a share of all samples above 0 and below 1, such as data/code:0.3",
                             printable(text)));
  const double millionths = *share * double(whole_share);
  if (std::fabs(millionths - std::round(millionths)) > 1e-6 * millionths)
    throw ConfigError(format("data.mix: the share of \"{}\" has more than 6 decimals; round it", printable(text)));
  return {text.substr(0, colon), std::int64_t(std::round(millionths))};
}

// The first text has the order that it would have alone.
std::uint64_t seed_of(std::uint64_t seed, std::size_t text) { return seed + text * hash_of("text of a mixture"); }

}  // namespace

std::vector<Share> parse_shares(const std::vector<std::string>& mix) {
  std::vector<Share> out;
  std::int64_t sum = 0;
  for (const std::string& text : mix) out.push_back(parse_share(text)), sum += out.back().millionths;
  if (sum >= whole_share)
    throw ConfigError(format("data.mix: its shares have the sum {}, and data.path has the rest; keep the sum below 1",
                             double(sum) / double(whole_share)));
  return out;
}

Mixture::Mixture(std::vector<Text> texts) : texts_(std::move(texts)) {
  std::int64_t divisor = 0, sum = 0;
  for (const Text& t : texts_) divisor = std::gcd(divisor, t.millionths), sum += t.millionths;
  check(sum == whole_share, "mixture: shares must have the sum {}, got {}", whole_share, sum);
  std::int64_t end = 0;
  for (const Text& t : texts_) {
    check(t.millionths > 0 && t.samples->length() == length() && t.samples->documents() == first().documents() &&
              t.samples->pairs_per_row() == first().pairs_per_row(),
          "mixture: texts must have shares, and samples of one kind");
    ends_.push_back(std::uint64_t(end += t.millionths / divisor));
  }
}

Mixture::TextSample Mixture::place(std::uint64_t sample, std::uint64_t seed) const {
  const std::uint64_t size = ends_.back(), block = sample / size;
  const std::uint64_t slot = Permutation(size, seed ^ hash_of("data mix"), block)(sample % size);
  const auto text = std::size_t(std::ranges::upper_bound(ends_, slot) - ends_.begin());
  const std::uint64_t begin = text == 0 ? 0 : ends_[text - 1];
  return {text, block * (ends_[text] - begin) + slot - begin};
}

void Mixture::read(std::uint64_t sample, std::uint64_t seed, Batch& batch, std::int64_t row) const {
  const TextSample p = place(sample, seed);
  const Samples& samples = *texts_[p.text].samples;
  const std::uint64_t n = samples.count();
  samples.read(Permutation(n, seed_of(seed, p.text), p.sample / n)(p.sample % n), batch, row);
}

std::uint64_t Mixture::epoch_samples() const {
  const std::uint64_t n = ends_.front();
  return (count() * ends_.back() + n - 1) / n;
}

}  // namespace octet::data
