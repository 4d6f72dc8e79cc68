#include "octet/tensor/point.hpp"

namespace octet {

Point::~Point() {
  if (event_ != nullptr) cuda::end_event(event_);
}

void Point::set(Stream& stream) {
  set_ = true;
  if (stream.device() != Device::cuda) return;
  if (event_ == nullptr) event_ = cuda::make_event(false);
  cuda::record(stream.queue(), event_);
}

void Point::hold(Stream& stream) const {
  check(set_, "point: a stream waits for a place that was never set");
  if (event_ != nullptr) cuda::hold(stream.queue(), event_);
}

void follow(Stream& later, Stream& earlier) {
  if (&later == &earlier) return;
  Point now;
  now.set(earlier);
  now.hold(later);
}

}  // namespace octet
