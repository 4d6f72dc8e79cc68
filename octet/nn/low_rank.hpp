#pragma once

#include "octet/nn/adapter.hpp"
#include "octet/nn/adapter_input.hpp"
#include "octet/nn/adapter_shard.hpp"
#include "octet/nn/weight.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// For each of n blocks of the rows of a weight:
///
///   y[:, block] += s (z A_b^T) B_b^T     A_b [R, in], B_b [rows of the block, R],   z = AdapterInput of x
///
/// The A of all blocks are one parameter [n R, in], and the B one [rows of all blocks, R]. A starts as normal values with the deviation of
/// PEFT's uniform ones, 1 / sqrt(3 in), and B at 0. Both are read in the type of activations. x is that of the layer's product: the values
/// of its codes, where it has some. Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.
class LowRankAdapter final : public Adapter {
 public:
  /// Of the layer `path`. s: `factor`.
  LowRankAdapter(const std::string& path, const AdapterShard&, double factor, std::unique_ptr<AdapterInput>, scaling::Precision&);

  bool reads_operands() const override { return true; }
  void forward(Stream&, const Quantized& x, const Tensor& y, const scaling::Pass&) override;
  void backward(Stream&, const Tensor& dy, const Quantized& x, const Tensor& dx) override;
  void visit(Visitor&) override;

 private:
  Quantized spread(Stream&) const;
  Tensor empty(Stream& stream, Shape shape) const { return stream.empty(shape, dtype_); }
  std::int64_t width() const { return a_.shape[0]; }

  AdapterShard part_;
  double factor_;
  DType dtype_;
  std::unique_ptr<AdapterInput> input_;
  Parameter a_, b_;
  Weight a_weight_, b_weight_;
};

}  // namespace octet::nn
