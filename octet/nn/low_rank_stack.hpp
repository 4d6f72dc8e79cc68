#pragma once

#include "octet/nn/adapter.hpp"
#include "octet/nn/weight.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// Of the experts of a stack, each with an adapter of its own:
///
///   y[rows of e] += s (x A_e^T) B_e^T     A_e [R, in], B_e [out, R]
///
/// The A of all experts here are one parameter [E R, in], and the B one [E out, R], with the first values of LowRankAdapter. x A_e^T is
/// kept from forward: 2 R bytes per row in BF16. Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.
class LowRankStack final : public Adapter {
 public:
  struct Config {
    std::int64_t matrices, out, in;   // E, and of one matrix
    std::int64_t first = 0, all = 0;  // of the model's experts: the first one here, and their number
    int copies = 1;                   // of these experts, each for its own rows: gradients are sums over them
    bool first_copy = true;
    std::int64_t rank = 0;  // R
    double factor = 1;      // s: alpha / rank
  };
  /// Of the stack `path`.
  LowRankStack(const std::string& path, const Config&, scaling::Precision&);

  bool reads_operands() const override { return true; }
  Tensor forward_stack(Stream&, const Quantized& x, const ops::RowGroups&, const Tensor& y, const scaling::Pass&, Region keep) override;
  void backward_stack(Stream&, const Tensor& dy, const Quantized& x, const Tensor& kept, const ops::RowGroups&, const Tensor& dx,
                      GradientProducts&) override;
  void visit(Visitor&) override;

 private:
  Quantized scaled(Stream&) const;

  Config config_;
  DType dtype_;
  Parameter a_, b_;
  Weight a_weight_, b_weight_;
};

}  // namespace octet::nn
