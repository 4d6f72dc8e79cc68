#pragma once

#include "octet/comm/collective.hpp"

namespace octet::comm {

/// Sees the calls of a communicator, for timelines.
class CallListener {
 public:
  virtual ~CallListener() = default;
  /// After a call has returned, on the thread that made it. On a GPU it is then queued. Times are those of monotonic_seconds().
  virtual void called(const Call&, std::int64_t sent_bytes, double begin, double end) = 0;
  /// After an exchange in two parts is done: the time from its begin on, in which its rank has computed other things.
  virtual void under_way(const Call&, std::int64_t /*sent_bytes*/, double /*begin*/, double /*end*/) {}
};

}  // namespace octet::comm
