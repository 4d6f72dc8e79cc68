#include "octet/data/windows.hpp"

#include <algorithm>
#include <string_view>

#include "octet/base/check.hpp"
#include "octet/data/dataset.hpp"

namespace octet::data {

Windows::Windows(const Dataset& dataset, TokenRanges ranges, std::int64_t length, const char* part, Documents documents)
    : dataset_(&dataset), ranges_(std::move(ranges)), length_(length), documents_(documents) {
  if (length < 1) throw ConfigError(format("data.sequence_length must be at least 1, got {}", length));
  if (dataset.has_pairs())
    throw ConfigError(format("{}: '{}' has pairs of answers, which training with dpo.beta alone reads; name a text or conversations",
                             dataset.key(), printable(dataset.folder())));
  if (dataset.marks_context() && documents == Documents::joined)
    throw ConfigError(
        format("{}: '{}' has conversations, of which only answers are targets; set data.document_mask = true (eval: "
               "--document-mask)",
               dataset.key(), printable(dataset.folder())));
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

void Windows::copy(Read read, std::uint64_t first, std::span<std::int32_t> out) const {
  std::size_t i = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (; !out.empty(); ++i) {
    const std::uint64_t from = ranges_[i].begin + (first - starts_[i]), n = std::min<std::uint64_t>(out.size(), ranges_[i].end - from);
    (dataset_->*read)(from, out.first(n));
    out = out.subspan(n), first += n;
  }
}

void Windows::read(std::uint64_t number, Batch& batch, std::int64_t row) const {
  check(number < count(), "windows: window {} is wanted, there are {}", number, count());
  const auto length = std::size_t(length_);
  const std::uint64_t first = number * length;
  std::int32_t *const inputs = batch.inputs.data() + row * length_, *const targets = batch.targets.data() + row * length_;
  copy(&Dataset::read, first, {inputs, length});
  std::copy(inputs + 1, inputs + length, targets);
  const std::size_t known = dataset_->marks_context() ? 0 : length - 1;
  copy(&Dataset::read_targets, first + 1 + known, {targets + known, length - known});
  if (documents_ == Documents::masked) mask_documents(first, targets, batch.document_starts.data() + row * length_);
}

// Of the window from token `first` of the text on. A new range begins with another document, or after a gap, which counts as one.
void Windows::mask_documents(std::uint64_t first, std::int32_t* targets, std::int32_t* starts) const {
  std::size_t range = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  std::uint64_t token = ranges_[range].begin + (first - starts_[range]), document = dataset_->document_at(token) + 1;
  const auto next_document = [&] { return document < dataset_->document_count() ? dataset_->document_start(document) : ~std::uint64_t(0); };
  std::uint64_t border = std::min(next_document(), ranges_[range].end);  // where the next document begins
  std::int32_t start = 0;
  for (std::int64_t t = 0; t < length_; ++t) {
    starts[t] = start;
    if (++token < border) continue;
    targets[t] = -1, start = std::int32_t(t + 1);
    if (token == ranges_[range].end) token = ranges_[++range].begin;
    document = dataset_->document_at(token) + 1;
    border = std::min(next_document(), ranges_[range].end);
  }
}

}  // namespace octet::data
