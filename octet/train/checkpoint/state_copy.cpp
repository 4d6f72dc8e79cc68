#include "octet/train/checkpoint/state_copy.hpp"

#include <cstring>

#include "octet/base/check.hpp"

namespace octet::train {

std::size_t StateCopy::bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, bytes] : entries_) sum += bytes.size();
  return sum;
}

void StateCopy::Save::add(std::string_view name, const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  to_.entries_.emplace_back(full(name), Bytes(begin, begin + bytes));
}

void StateCopy::Save::state(std::string_view name, const Tensor& t) {
  Bytes bytes(t.bytes());
  if (!bytes.empty()) download(stream_, t, bytes.data());
  to_.entries_.emplace_back(full(name), std::move(bytes));
}

void StateCopy::Save::state(std::string_view name, const StoredSlice& slice, Tiny) {
  state(format("{}#{}", name, slice.first), slice.stored.codes);
  if (slice.stored.scales) state(scales_name(name, slice.stored.storage), slice.stored.scales);
}

const StateCopy::Bytes& StateCopy::Restore::next(std::string_view name) {
  check(next_ < from_.entries_.size() && from_.entries_[next_].first == full(name), "state copy: {} is not next in it", full(name));
  return from_.entries_[next_++].second;
}

void StateCopy::Restore::read(std::string_view name, void* to, std::size_t bytes) {
  const Bytes& saved = next(name);
  check(saved.size() == bytes, "state copy: {} must have {} bytes, it has {}", full(name), bytes, saved.size());
  std::memcpy(to, saved.data(), bytes);
}

void StateCopy::Restore::state(std::string_view name, const Tensor& t) {
  const Bytes& saved = next(name);
  check(saved.size() == t.bytes(), "state copy: {} must have {} bytes, it has {}", full(name), t.bytes(), saved.size());
  if (!saved.empty()) upload(stream_, saved.data(), t);
}

void StateCopy::Restore::state(std::string_view name, const StoredSlice& slice, Tiny) {
  state(format("{}#{}", name, slice.first), slice.stored.codes);
  if (slice.stored.scales) state(scales_name(name, slice.stored.storage), slice.stored.scales);
}

void StateCopy::Restore::state(std::string_view name, std::vector<double>& x) {
  const Bytes& saved = next(name);
  x.resize(saved.size() / sizeof(double));
  if (!x.empty()) std::memcpy(x.data(), saved.data(), saved.size());
}

void StateCopy::Restore::finish() const {
  check(next_ == from_.entries_.size(), "state copy: {} parts were not asked for", from_.entries_.size() - next_);
}

}  // namespace octet::train
