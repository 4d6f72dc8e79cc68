#pragma once

#include <utility>

#include "octet/nn/block.hpp"

namespace octet::nn {

/// Trades time for memory: keeps only the input of `Inner`, and backward runs Inner's forward again. Gradients are bit-identical to
/// Inner's own, since a recomputing pass quantizes with the same scales and records nothing. Source: Chen et al. 2016, section 3.
template <class Inner>
class Recompute {
 public:
  using Config = typename Inner::Config;
  struct Saved {
    Tensor x;  // must live until backward
  };

  template <class... Args>
  explicit Recompute(Args&&... args) : inner_(std::forward<Args>(args)...) {}

  void forward(Stream& stream, const BlockContext& context, const Tensor& x, const Tensor& y, const Pass& pass, Saved* saved) {
    if (saved != nullptr) saved->x = x;
    inner_.forward(stream, context, x, y, pass, nullptr);
  }

  void backward(Stream& stream, const BlockContext& context, const Tensor& d, const Saved& saved, const Pass& pass) {
    const Scope scope(stream), rebuilding(stream, Lifetime::recompute);
    typename Inner::Saved rebuilt;
    const Tensor y = stream.empty(d.shape, d.dtype);
    inner_.forward(stream, context, saved.x, y, {.kind = Pass::Kind::recompute, .keep = Lifetime::recompute}, &rebuilt);
    inner_.backward(stream, context, d, rebuilt, pass);
  }

  void visit(Visitor& visitor) { inner_.visit(visitor); }

 private:
  Inner inner_;
};

}  // namespace octet::nn
