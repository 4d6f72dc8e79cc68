#include "octet/tensor/stream_event.hpp"

namespace octet {

StreamEvent::~StreamEvent() {
  if (event_ != nullptr) cuda::end_event(event_);
}

void StreamEvent::record(Stream& stream) {
  recorded_ = true;
  if (stream.device() != Device::cuda) return;
  if (event_ == nullptr) event_ = cuda::make_event(false);
  cuda::record(stream.queue(), event_);
}

void StreamEvent::wait(Stream& stream) const {
  check(recorded_, "stream event: a stream waits for one that was never recorded");
  if (event_ != nullptr) cuda::hold(stream.queue(), event_);
}

void wait_for(Stream& later, Stream& earlier) {
  if (&later == &earlier) return;
  StreamEvent now;
  now.record(earlier);
  now.wait(later);
}

}  // namespace octet
