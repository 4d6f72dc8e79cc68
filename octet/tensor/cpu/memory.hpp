#pragma once

#include <cstddef>
#include <utility>

namespace octet::cpu {

/// Address space of the CPU whose pages appear, zeroed, when first touched. Owns the mapping.
class Pages {
 public:
  Pages() = default;
  /// As much as this machine has memory, without taking any of it. Throws DeviceError where the system refuses the address space.
  static Pages reserve();
  ~Pages();
  Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bytes that a new allocation can use: available memory of the machine, or the rest of the control group's limit.
std::size_t available_bytes();

}  // namespace octet::cpu
