#pragma once

#include "octet/nn/block.hpp"

namespace octet::models {

/// A layer of multi-token prediction (MTP), of depth k = 1 to D behind a model's last block. For place i it reads the head's input
/// of depth k - 1, h, and the embedding of the token k places later, e:
///
///   x = M [norm_e(e) | norm_h(h)];   h' = norm(block(x))         M [D, 2 D]
///
/// The model's head predicts from h' the token k + 1 places later. Source: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.2,
/// equations 21 to 23; the order of the two halves of M is that of its published weights.
template <class Block, class Norm>
class MtpLayer {
 public:
  struct Saved {
    typename Norm::Input e, h, y;
    nn::Linear::Saved project;
    typename Block::Saved block;
    Arena::Mark end;  // of the block's saved activations in the pass's region
    Tensor dn;        // gradient of the output, to be filled before backward
  };

  MtpLayer(const std::string& path, const typename Block::Config&, const nn::NormConfig& final_norm, scaling::Precision&,
           const scaling::Site&, nn::Partition&);

  /// e, h and n: [T, D], of several members the own rows; e and h must live until backward. n is overwritten.
  void forward(Stream&, const nn::BlockContext&, const Tensor& e, const Tensor& h, const Tensor& n, const scaling::Pass&, Saved&);
  /// The gradients of e, overwritten, and of h, added to, from saved.dn.
  void backward(Stream&, const nn::BlockContext&, const Saved&, const Tensor& de, const Tensor& dh, const scaling::Pass&);
  void visit(nn::Visitor&);

 private:
  void join(Stream&, Saved&, const Tensor& both);

  nn::Partition& partition_;
  Norm norm_e_, norm_h_;
  nn::Linear project_;
  Block block_;
  Norm norm_;
};

extern template class MtpLayer<nn::GatedBlock, nn::RmsNorm>;
extern template class MtpLayer<nn::UnnormedBlock, nn::RmsNorm>;
extern template class MtpLayer<nn::GeluBlock, nn::LayerNorm>;

}  // namespace octet::models
