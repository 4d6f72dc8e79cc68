#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace octet::watch {

/// A series over steps in bounded memory. Bucket k summarizes the steps [k * stride, (k + 1) * stride), where stride is the smallest power
/// of two for which there are at most `most` buckets. A Bucket has `first` and `last`, the steps in it, and `absorb(const Bucket&)`, which
/// adds a later one: buckets that keep minimum and maximum lose no extreme by it.
template <class Bucket>
class StepBuckets {
 public:
  explicit StepBuckets(std::size_t most) : most_(std::max<std::size_t>(most, 2)) {}

  /// Adds the bucket of one step. A step that is not behind all others drops those that begin at or after it: a resumed run repeats them.
  void add(Bucket&& one) {
    while (!buckets_.empty() && buckets_.back().first >= one.first) buckets_.pop_back();
    if (!buckets_.empty() && buckets_.back().first / stride_ == one.first / stride_) {
      buckets_.back().absorb(one);
      return;
    }
    buckets_.push_back(std::move(one));
    while (buckets_.size() > most_) double_stride();
  }
  void clear() { buckets_.clear(), stride_ = 1; }

  const std::vector<Bucket>& all() const { return buckets_; }
  std::int64_t stride() const { return stride_; }

  /// At most `most` buckets of the steps from `from` to `to`: equal numbers of neighbours are merged.
  std::vector<Bucket> merged(std::int64_t from, std::int64_t to, std::size_t most) const {
    const auto begin = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& b) { return b.last >= from; });
    const auto end = std::find_if(begin, buckets_.end(), [&](const Bucket& b) { return b.first > to; });
    const std::size_t count = std::size_t(end - begin), group = (count + most - 1) / std::max<std::size_t>(most, 1);
    std::vector<Bucket> out;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % group == 0) out.push_back(begin[std::ptrdiff_t(i)]);
      else out.back().absorb(begin[std::ptrdiff_t(i)]);
    }
    return out;
  }

 private:
  void double_stride() {
    stride_ *= 2;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (kept > 0 && buckets_[kept - 1].first / stride_ == buckets_[i].first / stride_) buckets_[kept - 1].absorb(buckets_[i]);
      else if (kept++ != i) buckets_[kept - 1] = std::move(buckets_[i]);
    }
    buckets_.erase(buckets_.begin() + std::ptrdiff_t(kept), buckets_.end());
  }

  std::size_t most_;
  std::int64_t stride_ = 1;
  std::vector<Bucket> buckets_;
};

}  // namespace octet::watch
