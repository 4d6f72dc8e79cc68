#pragma once

#include "octet/nn/attention.hpp"
#include "octet/nn/mlp.hpp"
#include "octet/nn/norm.hpp"

namespace octet::nn {

/// What every block of a pass shares.
struct BlockContext {
  std::int64_t sequence = 0;  // tokens a sequence
  ops::RopeTable rope;
};

/// A pre-norm transformer block:
///
///   z = x + attention(norm1(x));   y = z + mlp(norm2(z))
template <class Norm, class Activation>
class Block {
 public:
  struct Config {
    Attention::Config attention;
    typename Mlp<Activation>::Config mlp;
    double norm_eps = 1e-5;
  };
  struct Saved {
    typename Norm::Saved norm1, norm2;
    Attention::Saved attention;
    typename Mlp<Activation>::Saved mlp;
  };

  Block(const std::string& path, const Config&, Precision&, const Site&);
  /// x, y: [T, D]. With saved, x must live until backward; without, y may be x.
  void forward(Stream&, const BlockContext&, const Tensor& x, const Tensor& y, const Pass&, Saved* saved);
  /// d: [T, D], the gradient of y on entry, of x on return.
  void backward(Stream&, const BlockContext&, const Tensor& d, const Saved&, const Pass&);
  void visit(Visitor&);

 private:
  std::string path_;
  Norm norm1_;
  Attention attention_;
  Norm norm2_;
  Mlp<Activation> mlp_;
};

using GatedBlock = Block<RmsNorm, SwiGlu>;
using GeluBlock = Block<LayerNorm, Gelu>;
extern template class Block<RmsNorm, SwiGlu>;
extern template class Block<LayerNorm, Gelu>;

}  // namespace octet::nn
