#pragma once

#include <vector>

#include "octet/tensor/stream_event.hpp"

namespace octet {

/// Copies of tensors in the host's memory, made beside the stream's later work, which must not change the tensors meanwhile.
class HostCopies {
 public:
  struct Copy {
    Tensor from;
    std::byte* to;
  };
  /// Of the values after all work that the stream has now. Tensors and memory outlive the copying.
  HostCopies(Stream&, std::vector<Copy>);

  /// Copies with several threads, of any thread, once. Returns when the host has all values. Throws DeviceError.
  void run();
  std::size_t bytes() const;

 private:
  struct Portion {
    const std::uint8_t* from;
    std::byte* to;
    std::size_t bytes;
  };
  class Copier;

  Device device_;
  StreamEvent begin_;
  std::vector<Portion> pieces_;
};

}  // namespace octet
