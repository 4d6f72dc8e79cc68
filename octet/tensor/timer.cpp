#include "octet/tensor/timer.hpp"

namespace octet {

Timer::Timer(Stream& stream) : stream_(stream) {
  if (stream.device() == Device::cuda) begin_ = cuda::make_event(), end_ = cuda::make_event();
}

Timer::~Timer() {
  if (begin_ != nullptr) cuda::end_event(begin_), cuda::end_event(end_);
}

void Timer::start() {
  if (stream_.device() == Device::cuda) cuda::record(stream_.queue(), begin_);
  start_ = std::chrono::steady_clock::now();
}

double Timer::stop() {
  if (stream_.device() == Device::cuda) {
    cuda::record(stream_.queue(), end_);
    return cuda::seconds_between(begin_, end_);
  }
  return stream_.device() == Device::null ? 0 : std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace octet
