#pragma once

#include "octet/nn/dot_product.hpp"
#include "octet/ops/attention/coded_attention.hpp"

namespace octet::nn {

/// Attention whose products read 8-bit codes in forward. Codes of q, k and v are saved, 1 byte per value. In backward, products read codes
/// too, or the values of the saved codes: then gradients are those of the function that forward computed.
class CodedDotProduct final : public DotProduct {
 public:
  CodedDotProduct(scaling::AttentionPlan plan, bool rope, Partition& p) : plan_(std::move(plan)), rope_(rope), partition_(p) {}

  Region values_region(const scaling::Pass&, bool) const override { return Lifetime::scratch; }
  void forward(Stream&, const ops::QkvShape&, const BlockContext&, const Tensor& qkv, ops::Sink& o, const Tensor& lse, const scaling::Pass&,
               Saved*) override;
  void backward(Stream&, const ops::QkvShape&, const BlockContext&, const Gradient&, const Saved&, const scaling::Pass&) override;

 private:
  void require_target(const Stream&, const ops::QkvShape&, const BlockContext&) const;
  Tensor encode(Stream&, const ops::RopeForward&, ops::AttentionSpecs&, const Tensor& codes, Region) const;
  ops::AttentionSpecs forward_specs(const scaling::Pass& operands, const scaling::Pass& products) const;
  void add_backward_specs(ops::AttentionSpecs&, const scaling::Pass&) const;
  void backward_in_codes(Stream&, const ops::QkvShape&, const BlockContext&, const Gradient&, const Saved&, ops::AttentionSpecs&,
                         const scaling::Pass&) const;

  scaling::AttentionPlan plan_;
  bool rope_;
  Partition& partition_;
};

}  // namespace octet::nn
