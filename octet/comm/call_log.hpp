#pragma once

#include <limits>
#include <vector>

#include "octet/comm/collective.hpp"

namespace octet::comm {

/// A call of the past, for the record of a failure.
struct LoggedCall {
  std::int64_t number = 0;  // of all calls of this rank, from 1
  std::int64_t step = -1;   // Communicator::set_step()
  Collective kind = Collective::barrier;
  DType dtype = DType::f32;
  std::int64_t count = 0, sent_bytes = 0;                            // elements of Call::whole(), and bytes_sent()
  double begin = 0, end = std::numeric_limits<double>::quiet_NaN();  // by monotonic_seconds(); NaN: not returned
};

/// The last calls of one rank: a ring.
class CallLog {
 public:
  static constexpr std::size_t most = 64;

  void begin(const Call&, std::int64_t step, std::int64_t sent_bytes, double now);
  /// The last one that began has returned.
  void end(double now);
  /// In the order in which they began.
  std::vector<LoggedCall> calls() const;

 private:
  std::int64_t count_ = 0;
  std::vector<LoggedCall> ring_;
};

}  // namespace octet::comm
