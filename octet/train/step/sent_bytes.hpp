#pragma once

#include <algorithm>

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Bytes that one rank sends, by two counters. That of work has calls of replayed parts, too, and no bytes that depend on data, such as
/// rows of experts. That of communicators has these, and no replayed calls. Where bytes depend on data nothing is replayed, so the larger
/// count has all of them.
class SentBytes {
 public:
  SentBytes() = default;
  /// Of an engine until now.
  explicit SentBytes(const Engine& engine) : of_work_(engine.stream.work().sent_bytes) {
    for (int c = 0; c < comm::collectives; ++c) of_calls_ += engine.traffic(comm::Collective(c)).bytes;
  }
  friend SentBytes operator-(SentBytes a, const SentBytes& b) {
    a.of_work_ -= b.of_work_, a.of_calls_ -= b.of_calls_;
    return a;
  }
  std::int64_t all() const { return std::max(of_work_, of_calls_); }

 private:
  std::int64_t of_work_ = 0, of_calls_ = 0;
};

}  // namespace octet::train
