#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "octet/tensor/cpu/memory.hpp"

namespace octet::cuda {

/// Address space of the GPU, backed with memory from its start as needed. Owns both.
class Pages {
 public:
  Pages() = default;
  /// Reserves as much address space as the GPU has memory, without allocating memory.
  static Pages reserve();
  ~Pages();
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_), std::swap(taken_, other.taken_), std::swap(parts_, other.parts_);
    return *this;
  }

  /// Backs the first `bytes` bytes with memory. Throws DeviceError when the GPU has no more.
  void take(std::size_t bytes);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Mapping {
    std::uint64_t handle;
    std::size_t begin, bytes;
  };
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0, taken_ = 0;
  std::vector<Mapping> parts_;
};

/// Memory of the host, at its own addresses, that the GPU can read and write over its bus: grows as Pages do. Owns it.
class HostPages {
 public:
  HostPages() = default;
  static HostPages reserve();
  ~HostPages();
  HostPages(HostPages&& other) noexcept { *this = std::move(other); }
  HostPages& operator=(HostPages&& other) noexcept {
    std::swap(pages_, other.pages_), std::swap(taken_, other.taken_);
    return *this;
  }

  /// Pins the first `bytes` bytes for the GPU; waits for it where some were pinned before. Throws DeviceError when the host has no more.
  void take(std::size_t bytes);

  std::byte* data() const { return pages_.data(); }
  std::size_t bytes() const { return pages_.bytes(); }

 private:
  void give_back();

  cpu::Pages pages_;
  std::size_t taken_ = 0;
};

}  // namespace octet::cuda
