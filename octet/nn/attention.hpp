#pragma once

#include <memory>
#include <optional>

#include "octet/nn/block_context.hpp"
#include "octet/nn/dot_product.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/norm.hpp"
#include "octet/nn/saved_activation.hpp"

namespace octet::nn {

/// Causal self-attention with grouped heads: one linear makes queries, keys and values, rotary positions are optional.
///
///   q, k, v = rope(norm(x Wqkv^T + b));   y = softmax_causal(q k^T / sqrt(d)) v Wo^T + b
///
/// The norms of query and key heads are optional: RMSNorm over the d columns of each head, one weight for all query heads and one for all
/// key heads, or over the columns of all heads together. Source: Dehghani et al. 2023, "Scaling Vision Transformers to 22 Billion
/// Parameters", section 2, there with LayerNorm.
class Attention {
 public:
  struct Config {
    std::int64_t width;  // D
    std::int64_t heads, kv_heads, head_dim;
    bool qkv_bias = false, out_bias = false;
    bool rope = true;
    double out_deviation = 0.02;               // of Wo's start: scaled down with depth
    std::optional<double> head_norm_eps = {};  // of the norms of query and key heads; none: no such norms
    bool norms_of_all_heads = false;           // one norm over all heads, which members of a partition cannot divide
    bool recomputed = false;                   // backward computes all of it again
  };
  /// Heads before their norm, [T, H d], and the statistics of [T H] rows, or of [T].
  struct HeadInput {
    ops::Saved x;
    Tensor inv_rms;
  };
  struct Saved {
    Linear::Saved qkv_linear, out_linear;
    DotProduct::Saved product;
    Tensor lse;
    ops::Saved o;                  // saved as codes, backward makes the operand of out_linear from them
    HeadInput q, k;                // empty without norms of heads
    SideWork::Work gather_x = {};  // where backward gathers the input again: fills qkv_linear.x
  };

  /// A member of the partition has its own heads, and their columns of the output's weight. It outlives this.
  Attention(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());

  /// The layer that reads x.
  const LinearSite& first() const { return qkv_; }
  /// x: operands of [T, D]; y: [T, D], of the own heads alone, empty when only backward's operands are wanted.
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& y, const scaling::Pass&, Saved*);
  /// dy, dx: [T / members, D], the own rows.
  void backward(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  struct HeadNorms {
    HeadNorms(const std::string& path, const Config&, scaling::Precision&, Partition&);
    RmsNorm q, k;
    SavedActivation q_input, k_input;
  };
  void normalize(Stream&, const Tensor& qkv, const scaling::Pass&, Saved*);
  void normalize_backward(Stream&, const Tensor& dqkv, const Saved&);

  Partition& partition_;
  Config config_;  // with the own heads
  Linear qkv_;
  std::unique_ptr<DotProduct> product_;
  Linear out_;
  SavedActivation saved_o_;
  std::unique_ptr<HeadNorms> norms_;
};

}  // namespace octet::nn
