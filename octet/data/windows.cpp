#include "octet/data/windows.hpp"

#include <algorithm>
#include <string_view>

#include "octet/base/check.hpp"
#include "octet/data/dataset.hpp"

namespace octet::data {

Windows::Windows(const Dataset& dataset, TokenRange range, std::int64_t length, const char* part)
    : dataset_(&dataset), range_(range), length_(length) {
  if (length < 1) throw ConfigError(format("data.sequence_length must be at least 1, got {}", length));
  if (range.size() > std::uint64_t(length)) return;
  if (range.size() == 0)
    throw ConfigError(format("the {} part of '{}' is empty; set data.eval_fraction (eval: --held-out) above 0 or tokenize more documents", part,
                             printable(dataset.folder())));
  throw ConfigError(format("data.sequence_length = {} needs {} tokens in a row, the {} part of '{}' has {}; shorten it (eval: --sequence), change "
                           "data.eval_fraction (eval: --held-out) or tokenize more text",
                           length, std::uint64_t(length) + 1, part, printable(dataset.folder()), range.size()));
}

void Windows::read(std::uint64_t number, std::int32_t* inputs, std::int32_t* targets) const {
  check(number < count(), "windows: window {} is wanted, there are {}", number, count());
  const auto length = std::size_t(length_);
  const std::uint64_t first = range_.begin + number * length;
  dataset_->read(first, {inputs, length});
  std::copy(inputs + 1, inputs + length, targets);
  dataset_->read(first + length, {targets + length - 1, 1});
}

}  // namespace octet::data
