#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// Memory of this process's GPU that other processes of the machine can map. Owns it. Source: CUDA's interprocess communication.
class SharedMemory {
 public:
  /// Names the memory for another process.
  using Handle = std::array<std::byte, 64>;

  /// Contents are undefined. Throws DeviceError when the GPU has no more memory, or cannot share it.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  Handle handle() const;

 private:
  std::byte* data_ = nullptr;
};

/// The SharedMemory of another process, at an address of this one: copies to it go over NVLink or PCIe. Ends before its owner.
class PeerMemory {
 public:
  /// Throws DeviceError where the two GPUs have no access to each other.
  explicit PeerMemory(const SharedMemory::Handle&);
  ~PeerMemory();
  PeerMemory(PeerMemory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  PeerMemory& operator=(PeerMemory&&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

/// Host memory [at, at + bytes) of whole pages, pinned for this process's GPU while this exists.
class PinnedMemory {
 public:
  /// Throws DeviceError when CUDA refuses.
  PinnedMemory(void* at, std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// The GPU's address of the first byte.
  std::byte* device() const { return device_; }

 private:
  void* at_;
  std::byte* device_ = nullptr;
};

/// Work put into the queue from now on begins when the flag has the value. No multiprocessor waits. flag: address of the GPU.
void await_flag(Queue, const std::byte* flag, std::uint32_t value);
/// The flag gets the value after all work in the queue, whose writes are then visible to other devices.
void set_flag(Queue, std::byte* flag, std::uint32_t value);
/// Whether work put into the queue becomes part of a graph that is being recorded.
bool is_recording(Queue);

}  // namespace octet::cuda
