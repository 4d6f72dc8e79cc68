#pragma once

#include <vector>

#include "octet/nn/visitor.hpp"
#include "octet/nn/weight.hpp"
#include "octet/ops/adapter_blocks/adapter_blocks.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// A product that is added to that of a linear layer, whose own weight then does not train. This form adds nothing.
class Adapter {
 public:
  virtual ~Adapter() = default;
  /// Whether backward reads x and the values of dy.
  virtual bool reads_operands() const { return false; }
  /// y [T, out] += adapted(x [T, in]).
  virtual void forward(Stream&, const Quantized& x, const Tensor& y, const scaling::Pass&) { (void)x, (void)y; }
  /// dx [T, in] += its gradient, unless dx is empty; adds to the gradients of the adapter's own parameters. dy: values [T, out]; x: as
  /// LinearSite::Saved, [in, T].
  virtual void backward(Stream&, const Tensor& dy, const Quantized& x, const Tensor& dx) { (void)dy, (void)x, (void)dx; }
  virtual void visit(Visitor&) {}
};

/// The form of an adapter of low rank.
struct LowRank {
  std::int64_t rank = 0;              // R
  double factor = 1;                  // s: alpha / rank
  std::vector<ops::RowBlock> blocks;  // rows of the weight that have matrices of their own, such as those of queries and of keys
};

/// For each of n blocks of the rows of a weight:
///
///   y[:, block] += s (x A_b^T) B_b^T     A_b [R, in], B_b [rows of the block, R]
///
/// The A of all blocks are one parameter [n R, in], and the B one [rows of all blocks, R]. A starts as normal values with the deviation of
/// PEFT's uniform ones, 1 / sqrt(3 in), and B at 0. Both are read in the type of activations. x is that of the layer's product: the values
/// of its codes, where it has some. Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.
class LowRankAdapter final : public Adapter {
 public:
  /// Of the layer `path`, whose weight is [out, in].
  LowRankAdapter(const std::string& path, std::int64_t out, std::int64_t in, LowRank, scaling::Precision&);

  bool reads_operands() const override { return true; }
  void forward(Stream&, const Quantized& x, const Tensor& y, const scaling::Pass&) override;
  void backward(Stream&, const Tensor& dy, const Quantized& x, const Tensor& dx) override;
  void visit(Visitor&) override;

 private:
  Quantized spread(Stream&) const;
  Tensor empty(Stream& stream, Shape shape) const { return stream.empty(shape, dtype_); }
  std::int64_t width() const { return a_.shape[0]; }

  LowRank form_;
  std::int64_t out_;
  DType dtype_;
  Parameter a_, b_;
  Weight a_weight_, b_weight_;
};

}  // namespace octet::nn
