#pragma once

#include "octet/nn/block_context.hpp"
#include "octet/nn/partition.hpp"
#include "octet/ops/attention/qkv.hpp"
#include "octet/ops/quantize/sink.hpp"
#include "octet/scaling/attention_plan.hpp"
#include "octet/scaling/pass.hpp"

namespace octet::nn {

/// Attention between its linear layers, o = softmax_causal(q k^T / sqrt(d)) v of q and k at their rotary positions, if it has them, in the
/// precision of its plan. Heads are the own ones.
class DotProduct {
 public:
  /// Saved by forward for backward, and lse.
  struct Saved {
    Tensor qkv;       // values, or codes
    Tensor descales;  // f32 [3] of codes whose scales come from their maxima; empty otherwise
  };

  virtual ~DotProduct() = default;
  /// Where the values of q, k and v live that forward reads.
  virtual Region values_region(const scaling::Pass&, bool saves) const = 0;
  /// qkv: [T, (H + 2 Hkv) d], changed; o: a sink of [T, H d] with its plain values; lse: f32 [H, T], overwritten.
  virtual void forward(Stream&, const ops::QkvShape&, const BlockContext&, const Tensor& qkv, ops::Sink& o, const Tensor& lse,
                       const scaling::Pass&, Saved*) = 0;
  struct Gradient {
    Tensor d_o, o, lse;
    Tensor dqkv;  // overwritten
  };
  /// dqkv: of q and k at their positions.
  virtual void backward(Stream&, const ops::QkvShape&, const BlockContext&, const Gradient&, const Saved&, const scaling::Pass&) = 0;
};

/// Of a plan; `rope`: with rotary positions. With several members of the partition, which outlives it, scales from maxima are those of all
/// heads.
std::unique_ptr<DotProduct> make_dot_product(scaling::AttentionPlan, bool rope, Partition&);

}  // namespace octet::nn
