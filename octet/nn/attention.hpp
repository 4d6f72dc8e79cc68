#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "octet/nn/dot_product.hpp"
#include "octet/nn/fused_qkv.hpp"
#include "octet/nn/latent_qkv.hpp"

namespace octet::nn {

/// Causal self-attention. Queries, keys and values come from one linear layer, with grouped heads, or from latents (FusedQkv, LatentQkv):
///
///   q, k, v = rope(qkv(x));   y = softmax_causal(q k^T / sqrt(d)) v Wo^T + b
class Attention {
 public:
  using Config = AttentionConfig;
  struct Saved {
    QkvSaved qkv;
    Linear::Saved out_linear;
    DotProduct::Saved product;
    Tensor lse;
    ops::Saved o;                  // saved as codes, backward makes the operand of out_linear from them
    SideWork::Work gather_x = {};  // where backward gathers the input again: fills qkv.first.x
  };

  /// A member of the partition has its own heads, and their columns of the output's weight. It outlives this.
  Attention(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());

  /// The one whose members divide this.
  Partition& partition() const { return partition_; }
  /// The layer that reads x.
  const LinearSite& first() const {
    return std::visit([](const auto& form) -> const LinearSite& { return form.first(); }, qkv_);
  }
  /// x: operands of [T, D]; y: [T, D], of the own heads alone, empty when only backward's operands are wanted.
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& y, const scaling::Pass&, Saved*);
  /// dy, dx: [T / members, D], the own rows.
  void backward(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  ops::QkvShape shape(const BlockContext& context) const {
    return std::visit([&](const auto& form) { return form.shape(context); }, qkv_);
  }
  ops::Sink operand_of(Stream&, const Tensor& o, const OperandRequest&, const scaling::Pass&,
                       const std::function<void(ops::Sink&)>& attend);

  Partition& partition_;
  std::int64_t heads_;  // the own ones
  std::variant<FusedQkv, LatentQkv> qkv_;
  std::unique_ptr<DotProduct> product_;
  Linear out_;
  SavedActivation saved_o_;
};

}  // namespace octet::nn
