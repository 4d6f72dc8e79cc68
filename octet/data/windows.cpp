#include "octet/data/windows.hpp"

#include <algorithm>
#include <string_view>

#include "octet/base/check.hpp"
#include "octet/data/dataset.hpp"

namespace octet::data {

Windows::Windows(const Dataset& dataset, TokenRanges ranges, std::int64_t length, const char* part)
    : dataset_(&dataset), ranges_(std::move(ranges)), length_(length) {
  if (length < 1) throw ConfigError(format("data.sequence_length must be at least 1, got {}", length));
  for (const TokenRange& range : ranges_) starts_.push_back(size_), size_ += range.size();
  if (size_ > std::uint64_t(length)) return;
  if (size_ == 0)
    throw ConfigError(format("the {} part of '{}' is empty; set data.eval_fraction (eval: --held-out) above 0 or tokenize more documents",
                             part, printable(dataset.folder())));
  throw ConfigError(
      format("data.sequence_length = {} needs {} tokens, the {} part of '{}' has {}; shorten it (eval: --sequence), change "
             "data.eval_fraction (eval: --held-out) or tokenize more text",
             length, std::uint64_t(length) + 1, part, printable(dataset.folder()), size_));
}

void Windows::copy(std::uint64_t first, std::span<std::int32_t> out) const {
  std::size_t i = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (; !out.empty(); ++i) {
    const std::uint64_t from = ranges_[i].begin + (first - starts_[i]), n = std::min<std::uint64_t>(out.size(), ranges_[i].end - from);
    dataset_->read(from, out.first(n));
    out = out.subspan(n), first += n;
  }
}

void Windows::read(std::uint64_t number, std::int32_t* inputs, std::int32_t* targets) const {
  check(number < count(), "windows: window {} is wanted, there are {}", number, count());
  const auto length = std::size_t(length_);
  const std::uint64_t first = number * length;
  copy(first, {inputs, length});
  std::copy(inputs + 1, inputs + length, targets);
  copy(first + length, {targets + length - 1, 1});
}

}  // namespace octet::data
