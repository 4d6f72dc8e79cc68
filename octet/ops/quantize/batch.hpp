#pragma once

#include <vector>

#include "octet/ops/quantize/quantize.hpp"

namespace octet::ops {

/// Matrices that are quantized together, with the bits of quantize(). A GPU takes a few launches for all of the small ones, which would
/// otherwise wait for a kernel each; other devices quantize each one at once.
class QuantizeBatch {
 public:
  struct Item {
    Tensor x;
    Sink sink;
  };

  explicit QuantizeBatch(Stream& stream) : stream_(stream) {}
  Stream& stream() const { return stream_; }

  /// quantize(x, sink), at the latest in run(). Until then x and the memory of the sink live, nothing reads the codes, and the sink is not
  /// added again.
  void add(const Stored& x, Sink& sink);
  /// Quantizes the rest.
  void run();

 private:
  Stream& stream_;
  std::vector<Item> waiting_;
};

}  // namespace octet::ops
