#pragma once

#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// A place in the order of a stream's work, for which other streams can wait. On devices other than a GPU there is nothing to wait for.
/// Within the recording of a graph a place is set and waited for by that graph alone.
class Point {
 public:
  Point() = default;
  ~Point();
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  /// After all work that the stream has now.
  void set(Stream&);
  /// Work put into the stream from now on begins after the last set() place. Throws ContractError without one.
  void hold(Stream&) const;

 private:
  cuda::Event event_ = nullptr;
  bool set_ = false;
};

/// Work put into `later` from now on begins when all work that `earlier` has now is done. Nothing if they are the same.
void follow(Stream& later, Stream& earlier);

}  // namespace octet
