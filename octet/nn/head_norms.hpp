#pragma once

#include <memory>

#include "octet/nn/attention_config.hpp"
#include "octet/nn/normed_rows.hpp"
#include "octet/nn/partition.hpp"

namespace octet::nn {

/// Norms of query and key heads of qkv, in place: RMSNorm over the d columns of each head, one weight for all query heads and one for all
/// key heads, or over the columns of all heads together, also of those that other members have. This form has none, and does nothing.
/// Source: Dehghani et al. 2023, "Scaling Vision Transformers to 22 Billion Parameters", section 2, there with LayerNorm.
class HeadNorms {
 public:
  virtual ~HeadNorms() = default;
  /// Whether backward reads gradients of heads before their rotation.
  virtual bool any() const { return false; }
  virtual void forward(Stream&, const Tensor&, const scaling::Pass&, QkvSaved*) {}
  /// Of the gradient of qkv, in place.
  virtual void backward(Stream&, const Tensor&, const QkvSaved&) {}
  virtual void visit(Visitor&) {}
};

/// Those of the configuration, with the own heads of a member, and `whole` with all of them. The partition outlives them.
std::unique_ptr<HeadNorms> make_head_norms(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole,
                                           scaling::Precision&, Partition&);

}  // namespace octet::nn
