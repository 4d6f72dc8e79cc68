#pragma once

#include <variant>

#include "octet/nn/experts.hpp"

namespace octet::nn {

/// The feed-forward of a block in models whose blocks may have experts: one SwiGLU MLP, or experts, as its configuration says.
class MlpOrExperts {
 public:
  struct Config {
    Mlp<SwiGlu>::Config dense;     // unless there are experts
    Experts::Config experts = {};  // number = 0: none
    bool recompute_activation = false, recomputed = false;
  };
  using Saved = Experts::Saved;

  MlpOrExperts(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());
  /// The one whose members divide this.
  Partition& partition() const {
    return std::visit([](const auto& f) -> Partition& { return f.partition(); }, form_);
  }
  const LinearSite& first() const {
    return std::visit([](const auto& f) -> const LinearSite& { return f.first(); }, form_);
  }
  void forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass, Saved* saved) {
    std::visit([&](auto& f) { f.forward(stream, x, context, y, pass, saved); }, form_);
  }
  void backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                const scaling::Pass& pass) {
    std::visit([&](auto& f) { f.backward(stream, dy, context, saved, dx, pass); }, form_);
  }
  void visit(Visitor& visitor) {
    std::visit([&](auto& f) { f.visit(visitor); }, form_);
  }

 private:
  std::variant<Mlp<SwiGlu>, Experts> form_;
};

}  // namespace octet::nn
