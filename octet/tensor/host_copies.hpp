#pragma once

#include <vector>

#include "octet/tensor/point.hpp"

namespace octet {

/// Copies of tensors in the host's memory, made beside the stream's later work, which must not change the tensors meanwhile.
class HostCopies {
 public:
  struct Part {
    Tensor from;
    std::byte* to;
  };
  /// Of the values after all work that the stream has now. Tensors and memory outlive the copying.
  HostCopies(Stream&, std::vector<Part>);

  /// Copies with several threads, of any thread, once. Returns when the host has all values. Throws DeviceError.
  void run();
  std::size_t bytes() const;

 private:
  struct Piece {
    const std::uint8_t* from;
    std::byte* to;
    std::size_t bytes;
  };
  class Copier;

  Device device_;
  Point begin_;
  std::vector<Piece> pieces_;
};

}  // namespace octet
