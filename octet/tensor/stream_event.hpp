#pragma once

#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// A place in the order of a stream's work, for which other streams can wait. On devices other than a GPU there is nothing to wait for.
/// Within the recording of a graph an event is recorded and waited for by that graph alone.
class StreamEvent {
 public:
  StreamEvent() = default;
  ~StreamEvent();
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  /// After all work that the stream has now.
  void record(Stream&);
  /// Work put into the stream from now on begins after the last record(). Throws ContractError without one.
  void wait(Stream&) const;

 private:
  cuda::Event event_ = nullptr;
  bool recorded_ = false;
};

/// Work put into `later` from now on begins when all work that `earlier` has now is done. Nothing if they are the same.
void wait_for(Stream& later, Stream& earlier);

}  // namespace octet
