#pragma once

#include <variant>

#include "octet/nn/mlp.hpp"

namespace octet::nn {

/// The MLP of a feed-forward with experts that every token uses; of no columns, it does nothing. Its input is quantized here, since the
/// router's is not.
class SharedExperts {
 public:
  using Saved = Mlp<SwiGlu>::Saved;  // without the input, which backward gives again

  /// config.hidden = 0: none.
  SharedExperts(const std::string& path, const Mlp<SwiGlu>::Config&, scaling::Precision&, const scaling::Site&, Partition&);
  /// y += shared(x); y may be empty where only backward's operands are wanted.
  void forward(Stream&, const Tensor& x, const BlockContext&, const Tensor& y, const scaling::Pass&, Saved*);
  /// dx += the gradient of x.
  void backward(Stream&, const Tensor& dy, const Tensor& x, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor&);

 private:
  struct None {};
  using Form = std::variant<None, Mlp<SwiGlu>>;
  static Form make_form(const std::string& path, const Mlp<SwiGlu>::Config&, scaling::Precision&, const scaling::Site&, Partition&);

  Form form_;
};

}  // namespace octet::nn
