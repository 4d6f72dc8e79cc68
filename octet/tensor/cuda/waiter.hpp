#pragma once

#include <functional>

#include "octet/tensor/cuda/event.hpp"

namespace octet::cuda {

/// Decides how a thread waits for the GPU. A process whose queued work exchanges tensors with other processes must not wait forever for one
/// that is lost.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Returns when done() is true. Throws what ends the wait before.
  virtual void until(const std::function<bool()>& done) = 0;
};

/// Every later wait of this thread for its GPU is the waiter's, which must outlive them; null: CUDA's own, without a limit.
void set_waiter(Waiter*);

/// Whether all work put into the queue is done. Throws DeviceError when some of it failed.
bool is_done(Queue);
/// Returns when the GPU has passed the event. Throws DeviceError when work before it failed, and as the thread's waiter does.
void wait(Event);

}  // namespace octet::cuda
