#pragma once

#include "octet/nn/attention.hpp"
#include "octet/nn/branch_end.hpp"
#include "octet/nn/mlp_or_experts.hpp"
#include "octet/nn/norm.hpp"
#include "octet/nn/recompute.hpp"

namespace octet::nn {

/// A transformer block:
///
///   z = x + end1(attention(norm1(x)));   y = z + end2(mlp(norm2(z)))
///
/// Norm is the type of norm1 and norm2, and FeedForward that of mlp: Mlp has its members. Both ends usually do nothing (BranchEnd).
template <class Norm, class FeedForward>
class Block {
 public:
  struct Config {
    Attention::Config attention;
    typename FeedForward::Config mlp;
    NormConfig norm = {};
    BranchEnd::Config end = {};  // of both branches
    Recompute recompute;
  };
  using Input = typename Norm::Input;
  /// Where parts are recomputed, theirs is empty.
  struct Saved {
    Input x, z;
    Attention::Saved attention;
    typename FeedForward::Saved mlp;
    BranchEnd::Saved attention_end, mlp_end;
  };

  /// A member of the partition has its own part of each branch. It outlives this.
  Block(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());
  /// x, y: [T, D], of several members the own rows; leaves the statistics of both for the norms that come. With saved, x must live until
  /// backward; without, y may be x, and must be where x has memory for a branch: then x is both residual sums, which wait for a norm.
  void forward(Stream&, const BlockContext&, Input& x, Input& y, const scaling::Pass&, Saved* saved);
  /// d: [T, D], the gradient of y on entry, of x on return.
  void backward(Stream&, const BlockContext&, const Tensor& d, const Saved&, const scaling::Pass&);
  void visit(Visitor&);

 private:
  // The two branches store tensors for backward in `saved`, operands of the norm only with `keep_operand`; an empty y leaves its GEMM out.
  void attend(Stream&, const BlockContext&, Input& x, const Tensor& y, const scaling::Pass&, Saved*, bool keep_operand);
  void feed(Stream&, const BlockContext&, Input& z, const Tensor& y, const scaling::Pass&, Saved*, bool keep_operand);
  template <class Branch>
  Gather normalized(Stream&, Norm&, Input& x, const Branch&, OperandRequest, const scaling::Pass&) const;
  template <class Run>
  void reduced(Stream&, Partition&, const Tensor& y, const Run&) const;
  void rebuild_attention(Stream&, const BlockContext&, Saved&, const scaling::Pass& again);
  void rebuild_mlp(Stream&, const BlockContext&, Saved&, const scaling::Pass& again);

  std::string path_;
  Recompute recompute_;
  Norm norm1_;
  Attention attention_;
  BranchEnd attention_end_;
  Norm norm2_;
  FeedForward mlp_;
  BranchEnd mlp_end_;
};

using GatedBlock = Block<RmsNorm, MlpOrExperts>;
using UnnormedBlock = Block<NoNorm, MlpOrExperts>;
using GeluBlock = Block<LayerNorm, Mlp<Gelu>>;
extern template class Block<RmsNorm, MlpOrExperts>;
extern template class Block<NoNorm, MlpOrExperts>;
extern template class Block<LayerNorm, Mlp<Gelu>>;

}  // namespace octet::nn
