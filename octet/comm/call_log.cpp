#include "octet/comm/call_log.hpp"

#include <algorithm>

namespace octet::comm {

void CallLog::begin(const Call& call, std::int64_t step, std::int64_t sent_bytes, double now) {
  if (ring_.empty()) ring_.resize(most);
  const Tensor& whole = call.whole();
  ring_[std::size_t(count_) % most] = {.number = count_ + 1,
                                       .step = step,
                                       .kind = call.kind,
                                       .dtype = whole.dtype,
                                       .count = whole.data == nullptr ? 0 : whole.count(),
                                       .sent_bytes = sent_bytes,
                                       .begin = now};
  ++count_;
}

void CallLog::end(double now) {
  if (count_ > 0) ring_[std::size_t(count_ - 1) % most].end = now;
}

std::vector<LoggedCall> CallLog::calls() const {
  std::vector<LoggedCall> out;
  for (std::int64_t i = std::max<std::int64_t>(0, count_ - std::int64_t(most)); i < count_; ++i)
    out.push_back(ring_[std::size_t(i) % most]);
  return out;
}

}  // namespace octet::comm
