#pragma once

#include <functional>

#include "octet/nn/expert_exchange.hpp"
#include "octet/nn/shared_experts.hpp"
#include "octet/nn/stacked_linear.hpp"

namespace octet::nn {

/// A feed-forward of E experts, of which a router chooses K per token:
///
///   u = x Wr^T;   w_k, chosen = route(u)                       FP32
///   y = sum over k of W2_e (w_k silu(gate) up) + shared(x),    gate, up = W1_e x,   e = chosen[k]
///
/// The weight comes before the second matrix, so no output of an expert is kept, and the sum over k is a plain one. Each token's rows are
/// gathered from x in forward, and again in backward: x is kept once, not K times. No launch and no size depends on the choice, unless
/// members of an exchange have the experts. Where these have rounds, forward computes one after the other, and backward computes each again
/// before its own part: only x and the choices are kept. Sources:
/// Fedus et al. 2022, "Switch Transformers"; Guo et al. 2025, "SonicMoE", section 3; DeepSeek-AI 2024, section 2.1.2.
class Experts {
 public:
  struct Config {
    std::int64_t width = 0, hidden = 0;  // D, and F of one expert
    std::int64_t number = 0;             // E
    std::int64_t shared = 0;             // columns of the shared MLP; 0: none
    std::int64_t layer = 0;              // among the layers with experts
    ops::Routing routing = {};
    float limit = 0;  // of SwiGLU: ops::weighted_swiglu_forward
    double out_deviation = 0.02;
    bool recompute_activation = false, recomputed = false;
    ExpertExchange* exchange = &all_experts();  // outlives this
  };
  /// The input is in_linear.x, as the router keeps it: x itself.
  struct Saved : Mlp<SwiGlu>::Saved {
    Tensor logits, scores, weights, chosen;
    ExpertExchange::Visit visit;
    SharedExperts::Saved shared;
  };

  /// Members of the partition have copies: each computes its own rows, and exchanges nothing with others.
  Experts(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());
  /// The one whose members divide this.
  Partition& partition() const { return partition_; }
  /// The layer that reads x, which is not quantized.
  const LinearSite& first() const { return router_; }
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& y, const scaling::Pass&, Saved*);
  void backward(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  ExpertExchange::Choices choices_of(const Saved&, const scaling::Pass&, bool saves) const;
  void route(Stream&, const QTensor& x, const BlockContext&, const scaling::Pass&, Saved&, bool saves);
  void activate(Stream&, const Tensor& h, bool rows, const scaling::Pass&, Saved&, ops::Sink& hidden, bool saves) const;
  ops::Sink gathered(Stream&, const StackedLinear&, const OperandRequest&, const Tensor& x, const ExpertExchange::Visit&,
                     const scaling::Pass&) const;
  void expand(Stream&, const Tensor& x, const ExpertExchange::Visit&, const Tensor& h, const scaling::Pass&, LinearSite::Saved*);
  void save_of_second(Stream&, const Tensor& h, const scaling::Pass&, Saved&);
  void forward_of_round(Stream&, const Tensor& x, const Tensor& h, const Tensor& y, const scaling::Pass&, Saved&, bool saves);
  // The products of a stack's gradients, of columns of its dy and x, and its adapter's part of dx.
  using WeightProduct = std::function<void(StackedLinear&, const ops::Sink& dy, const LinearSite::Saved&, const Tensor& dx)>;
  std::vector<Parameter*> of_stacks();
  void backward_of_second(Stream&, const Tensor& dy, const Saved&, const Tensor& dhidden, const WeightProduct&, const scaling::Pass&);
  void backward_of_first(Stream&, const Tensor& dhidden, const Saved&, const Tensor& dweights, const Tensor& dgathered,
                         const WeightProduct&, const scaling::Pass&);
  void backward_of_rows(Stream&, const Tensor& dy, const Saved&, const Tensor& dweights, const Tensor& dgathered, const WeightProduct&,
                        const scaling::Pass&);
  void backward_of_router(Stream&, const BlockContext&, const Saved&, const Tensor& dweights, const Tensor& dx, const scaling::Pass&);
  void backward_at_once(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void backward_of_rounds(Stream&, const Tensor& dy, const Saved&, const Tensor& dweights, const Tensor& dx, const scaling::Pass&);
  void backward_in_rounds(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);

  Partition& partition_;
  Config config_;
  std::string path_;
  Linear router_;
  StackedLinear in_, out_;
  SavedActivation h_;
  bool recompute_activation_;
  SharedExperts shared_;
};

}  // namespace octet::nn
