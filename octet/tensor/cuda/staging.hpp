#pragma once

#include <array>
#include <cstddef>

#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// Pinned memory of the host for copies to and from the GPU in parts: a ring of buffers, each with the event of its last copy. The host
/// fills or empties one slot while others are on their way, and waits only where the ring is full: an upload does not wait for
/// the work before it in the queue. Owns the memory, which is allocated on first use. Not thread-safe.
class Staging {
 public:
  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Returns when the host's bytes may be reused; the GPU has them when the queue gets there.
  void upload(Queue, const void* host, void* to, std::size_t bytes);
  /// Returns when the bytes are there, that is when all work before it in the queue is done.
  void download(Queue, const void* from, void* host, std::size_t bytes);

 private:
  static constexpr std::size_t slot_bytes = std::size_t(4) << 20;
  struct Slot {
    std::byte* data = nullptr;
    Event copied = nullptr;  // behind the last copy from or to this slot
  };
  Slot& next();

  std::array<Slot, 4> slots_;
  std::size_t at_ = 0;
};

}  // namespace octet::cuda
