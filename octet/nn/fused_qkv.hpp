#pragma once

#include "octet/nn/attention_config.hpp"
#include "octet/nn/block_context.hpp"
#include "octet/nn/clip.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/normed_rows.hpp"
#include "octet/nn/saved_activation.hpp"

namespace octet::nn {

/// Queries, keys and values from one linear layer:
///
///   q, k, v = clip(norm(x Wqkv^T + b))
///
/// The norms of query and key heads are optional: RMSNorm over the d columns of each head, one weight for all query heads and one for all
/// key heads, or over the columns of all heads together. Clip usually has no limit. Queries and keys are not at their positions yet: the
/// dot product turns them, and backward turns their gradients back. Source of the norms: Dehghani et al. 2023, "Scaling Vision Transformers
/// to 22 Billion Parameters", section 2, there with LayerNorm.
class FusedQkv {
 public:
  /// `own`: with the own heads of a member; `whole`: with all of them. The partition outlives this.
  FusedQkv(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole, scaling::Precision&, const scaling::Site&,
           Partition&);

  /// The layer that reads x.
  const LinearSite& first() const { return qkv_; }
  ops::QkvShape shape(const BlockContext&) const;
  /// Whether the dot product turns queries and keys.
  bool leaves_rotation() const { return config_.rope; }
  /// qkv: [T, columns of shape()], overwritten.
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& qkv, const scaling::Pass&, QkvSaved*);
  /// Where dqkv lives that backward reads.
  Region gradient_region(const scaling::Pass&) const;
  /// dqkv: changed; dx: [T / members, D], the own rows.
  void backward(Stream&, const Tensor& dqkv, const BlockContext&, const QkvSaved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  struct HeadNorms {
    HeadNorms(const std::string& path, const AttentionConfig&, scaling::Precision&, Partition&);
    RmsNorm q, k;
    SavedActivation q_input, k_input;
  };
  void normalize(Stream&, const Tensor& qkv, const scaling::Pass&, QkvSaved*);
  void normalize_backward(Stream&, const Tensor& dqkv, const QkvSaved&);
  /// Of queries and keys that have no norms, and of values, in place.
  void clip(Stream&, const Tensor& qkv, const scaling::Pass&, QkvSaved*);
  void clip_backward(Stream&, const Tensor& dqkv, const QkvSaved&);
  std::int64_t query_columns() const { return config_.heads * config_.head_dim; }
  std::int64_t key_columns() const { return config_.kv_heads * config_.head_dim; }

  Partition& partition_;
  AttentionConfig config_;  // with the own heads
  Linear qkv_;
  std::unique_ptr<HeadNorms> norms_;
  Clip clip_;
};

}  // namespace octet::nn
