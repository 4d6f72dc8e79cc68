#pragma once

#include "octet/nn/linear.hpp"

namespace octet::nn {

/// Where a loss is collected, on the device.
struct LossSums {
  Tensor sum;      // f64 [1], added to
  Tensor counted;  // i64 [1], tokens that count, added to
};

/// The factor of a loss whose gradients are wanted: `constant`, and on the device `loss_scale`, f32 [1] or empty.
struct LossFactor {
  float constant = 1;
  Tensor loss_scale = {};
};

/// Tokens per chunk of the head. In BF16, few on a CPU, so that logits stay in its caches, and many on a GPU, so that its GEMMs fill it.
/// A quantized head has scales per chunk, so its chunks are equal on every device.
std::int64_t head_chunk(const Stream&, bool quantized);

/// The projection to the vocabulary and the cross-entropy, by chunks of head_chunk() tokens: logits [chunk, V] exist for one chunk at a
/// time, in the activations' type. In a training pass each chunk is turned into its gradient at once.
class LanguageHead {
 public:
  /// vocabulary: tokens that exist; the weight has as many rows or more (padding).
  LanguageHead(const std::string& path, std::int64_t width, std::int64_t padded_vocabulary, std::int64_t vocabulary, scaling::Precision&,
               scaling::Site);
  LanguageHead(const std::string& path, Parameter& tied_weight, std::int64_t vocabulary, scaling::Precision&, scaling::Site);

  /// Adds the loss of x [T, D] against targets i32 [T] (-1 does not count) to `sums`. With dx [T, D], also fills the gradient of
  /// factor * loss, and adds to the weight's.
  void loss(Stream&, const Tensor& x, const Tensor& targets, const LossSums& sums, const scaling::Pass&, const LossFactor& factor,
            const Tensor& dx);
  /// logits [T, V] of x [T, D].
  void logits(Stream&, const Tensor& x, const Tensor& logits, const scaling::Pass&);
  void visit(Visitor& visitor) { linear_.visit(visitor); }

  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t padded_vocabulary() const { return linear_.out(); }

 private:
  std::int64_t vocabulary_;
  Linear linear_;
};

}  // namespace octet::nn
