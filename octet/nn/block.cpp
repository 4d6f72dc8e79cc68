#include "octet/nn/block.hpp"

namespace octet::nn {
namespace {

template <class Config>
Config with_recompute(Config mlp, const Recompute& r) {
  mlp.recompute_activation = r.activation && !r.mlp, mlp.recomputed = r.mlp;
  return mlp;
}
Attention::Config with_recompute(Attention::Config attention, const Recompute& r) {
  attention.recomputed = r.attention;
  return attention;
}

}  // namespace

template <class Norm, class Activation>
Block<Norm, Activation>::Block(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site)
    : path_(path),
      recompute_(c.recompute),
      norm1_(path + ".norm1", c.attention.width, c.norm_eps),
      attention_(path + ".attn", with_recompute(c.attention, c.recompute), precision, site),
      norm2_(path + ".norm2", c.attention.width, c.norm_eps),
      mlp_(path + ".mlp", with_recompute(c.mlp, c.recompute), precision, site) {}

template <class Norm, class Activation>
void Block<Norm, Activation>::attend(Stream& stream, const BlockContext& context, Input& x, const Tensor& y, const scaling::Pass& pass,
                                     Saved* saved, bool keep_operand) {
  const Scope scope(stream);
  ops::Sink n = attention_.input_sink(stream, x.x.shape[0], pass, keep_operand);
  norm1_.forward(stream, x, n);
  attention_.forward(stream, n.codes, context, y, pass, saved ? &saved->attention : nullptr);
}

template <class Norm, class Activation>
void Block<Norm, Activation>::feed(Stream& stream, Input& z, const Tensor& y, const scaling::Pass& pass, Saved* saved, bool keep_operand) {
  const Scope scope(stream);
  ops::Sink n = mlp_.input_sink(stream, z.x.shape[0], pass, keep_operand);
  norm2_.forward(stream, z, n);
  mlp_.forward(stream, n.codes, y, pass, saved ? &saved->mlp : nullptr);
}

template <class Norm, class Activation>
void Block<Norm, Activation>::forward(Stream& stream, const BlockContext& context, Input& x, Input& y, const scaling::Pass& pass,
                                      Saved* saved) {
  const Scope scope(stream);
  const bool keep = saved != nullptr, keep_attention = keep && !recompute_.attention, keep_mlp = keep && !recompute_.mlp;
  const Region region = keep && !recompute_.block ? pass.keep : Region(Lifetime::scratch);
  Input z = Norm::input(stream, stream.empty(x.x.shape, x.x.dtype, region, Category::activations), region);
  const Tensor branch = stream.empty(x.x.shape, x.x.dtype);
  attend(stream, context, x, branch, pass, keep_attention ? saved : nullptr, keep_attention && !recompute_.norm);
  norm2_.add(stream, x.x, branch, z);
  feed(stream, z, branch, pass, keep_mlp ? saved : nullptr, keep_mlp && !recompute_.norm);
  if (keep) saved->x = x, saved->z = z;
  norm1_.add(stream, z.x, branch, y);
  stream.observe(path_, "y", y.x);
}

// Recomputes the parts of attention that were not kept, and z if it was not.
template <class Norm, class Activation>
void Block<Norm, Activation>::rebuild_attention(Stream& stream, const BlockContext& context, Saved& s) {
  if (recompute_.block) {
    s.z = Norm::input(stream, stream.empty(s.x.x.shape, s.x.x.dtype, scaling::recomputing.keep, Category::activations),
                      scaling::recomputing.keep);
    attend(stream, context, s.x, s.z.x, scaling::recomputing, &s, true);
    norm2_.add(stream, s.x.x, s.z.x, s.z);
  } else if (recompute_.attention) {
    attend(stream, context, s.x, {}, scaling::recomputing, &s, true);
  } else if (recompute_.norm) {
    ops::Sink n = attention_.rebuilt_sink(stream, s.x.x.shape[0], scaling::recomputing);
    norm1_.forward(stream, s.x, n);
    s.attention.qkv_linear.x = n.codes.cols;
  }
}

template <class Norm, class Activation>
void Block<Norm, Activation>::rebuild_mlp(Stream& stream, Saved& s) {
  if (recompute_.mlp) {
    feed(stream, s.z, {}, scaling::recomputing, &s, true);
  } else if (recompute_.norm) {
    ops::Sink n = mlp_.rebuilt_sink(stream, s.z.x.shape[0], scaling::recomputing);
    norm2_.forward(stream, s.z, n);
    s.mlp.in_linear.x = n.codes.cols;
  }
}

template <class Norm, class Activation>
void Block<Norm, Activation>::backward(Stream& stream, const BlockContext& context, const Tensor& d, const Saved& saved,
                                       const scaling::Pass& pass) {
  const Scope scope(stream), rebuilding(stream, scaling::recomputing.keep);
  Saved s = saved;
  const Tensor dn = stream.empty(d.shape, d.dtype);
  if (recompute_.block) rebuild_attention(stream, context, s);  // z must be there before the MLP's part
  {
    const Scope part(stream), rebuilt(stream, scaling::recomputing.keep);
    rebuild_mlp(stream, s);
    mlp_.backward(stream, d, s.mlp, dn, pass);
    norm2_.backward(stream, dn, s.z, d, true);
  }
  const Scope part(stream);
  if (!recompute_.block) rebuild_attention(stream, context, s);
  attention_.backward(stream, d, context, s.attention, dn, pass);
  norm1_.backward(stream, dn, s.x, d, true);
}

template <class Norm, class Activation>
void Block<Norm, Activation>::visit(Visitor& visitor) {
  norm1_.visit(visitor), attention_.visit(visitor), norm2_.visit(visitor), mlp_.visit(visitor);
}

template class Block<RmsNorm, SwiGlu>;
template class Block<LayerNorm, Gelu>;

}  // namespace octet::nn
