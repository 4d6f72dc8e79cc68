#pragma once

#include <algorithm>

#include "octet/nn/objective.hpp"
#include "octet/nn/operands.hpp"

namespace octet::nn {

/// The factor of a loss whose gradients are wanted: `constant`, and on the device `loss_scale`, f32 [1] or empty.
struct LossFactor {
  float constant = 1;
  Tensor loss_scale = {};
};

/// Tokens per chunk of the head. In BF16, few on a CPU, so that logits stay in its caches, and many on a GPU, so that its GEMMs fill it.
/// A quantized head has scales per chunk, so its chunks are equal on every device.
std::int64_t head_chunk(const Stream&, bool quantized);

/// The projection to the vocabulary and the loss, by chunks of head_chunk() tokens: logits [chunk, V] exist for one chunk at a
/// time, in the activations' type. In a training pass each chunk is turned into its gradient at once. An objective that needs the losses
/// of all tokens before the first gradient computes the chunks twice.
class LanguageHead {
 public:
  /// vocabulary: tokens that exist; the weight has as many rows or more (padding).
  /// A member of the partition has its own rows of the weight, of which the tied one is the part. It and the objective outlive this.
  LanguageHead(const std::string& path, std::int64_t width, std::int64_t padded_vocabulary, std::int64_t vocabulary, scaling::Precision&,
               scaling::Site, Partition& = whole_partition(), const Objective& = sum_of_tokens());
  LanguageHead(const std::string& path, Parameter& tied_weight, std::int64_t vocabulary, scaling::Precision&, scaling::Site,
               Partition& = whole_partition(), const Objective& = sum_of_tokens());

  /// Adds the objective's loss of x [T, D] to `sums`. With dx [T, D], also fills the gradient of
  /// factor * loss, and adds to the weight's. Of several members, x and dx are their own rows, and all add the loss of all rows.
  void loss(Stream&, const Tensor& x, const Targets&, const LossSums& sums, const scaling::Pass&, const LossFactor& factor,
            const Tensor& dx);
  /// logits [T, V] of x [T, D], all rows and columns on every member.
  void logits(Stream&, const Tensor& x, const Tensor& logits, const scaling::Pass&);
  void visit(Visitor& visitor) { linear_.visit(visitor); }
  /// Declares another loss() per micro-batch with a gradient. Before parameters get their memory.
  void add_loss() { linear_.weight().parameter().gradient.add_use(GradientUse::products); }

  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t padded_vocabulary() const { return linear_.out() * partition_.members(); }

 private:
  void pass_over(Stream&, const Objective::HeadPass&, const Tensor& x, const Tensor& targets, const scaling::Pass&,
                 const LossFactor& factor, const Tensor& dx);
  Tensor statistics_of_all(Stream&, const Tensor& logits, const Tensor& targets) const;
  std::int64_t first_token() const { return linear_.out() * partition_.member(); }
  // Tokens that the own columns are of: the last ones may be padding.
  std::int64_t own_tokens() const { return std::min(vocabulary_ - first_token(), linear_.out()); }

  Partition& partition_;
  const Objective& objective_;
  std::int64_t vocabulary_;
  Linear linear_;
};

}  // namespace octet::nn
