#pragma once

#include "octet/nn/attention_config.hpp"
#include "octet/nn/block_context.hpp"
#include "octet/nn/clip.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/head_norms.hpp"

namespace octet::nn {

/// Queries, keys and values from one linear layer:
///
///   q, k, v = clip(norm(x Wqkv^T + b))
///
/// The norms are those of query and key heads (nn/head_norms.hpp). Clip usually has no limit. Queries and keys are not at their positions
/// yet: the dot product turns them, and backward turns their gradients back.
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
  Partition& partition_;
  AttentionConfig config_;  // with the own heads
  Linear qkv_;
  std::unique_ptr<HeadNorms> norms_;
  Clip clip_;
};

}  // namespace octet::nn
