#include "octet/nn/block.hpp"

#include "octet/ops/add/add.hpp"

namespace octet::nn {

template <class Norm, class Activation>
Block<Norm, Activation>::Block(const std::string& path, const Config& c, Precision& precision, const Site& site)
    : path_(path), norm1_(path + ".norm1", c.attention.width, c.norm_eps), attention_(path + ".attn", c.attention, precision, site),
      norm2_(path + ".norm2", c.attention.width, c.norm_eps), mlp_(path + ".mlp", c.mlp, precision, site) {}

template <class Norm, class Activation>
void Block<Norm, Activation>::forward(Stream& stream, const BlockContext& context, const Tensor& x, const Tensor& y, const Pass& pass, Saved* saved) {
  const Scope scope(stream);
  const bool keep = saved != nullptr;
  const std::int64_t tokens = x.shape[0];
  const Tensor z = stream.empty(x.shape, x.dtype, keep ? pass.keep : Region(Lifetime::scratch), Category::activations);
  const Tensor branch = stream.empty(x.shape, x.dtype);
  {
    const Scope inner(stream);
    ops::Sink n = attention_.input_sink(stream, tokens, pass, keep);
    norm1_.forward(stream, x, n, pass, keep ? &saved->norm1 : nullptr);
    attention_.forward(stream, n.codes, context.sequence, context.rope, branch, pass, keep ? &saved->attention : nullptr);
    ops::add(stream, x, branch, z);
  }
  ops::Sink n = mlp_.input_sink(stream, tokens, pass, keep);
  norm2_.forward(stream, z, n, pass, keep ? &saved->norm2 : nullptr);
  mlp_.forward(stream, n.codes, branch, pass, keep ? &saved->mlp : nullptr);
  ops::add(stream, z, branch, y);
  stream.observe(path_, "y", y);
}

template <class Norm, class Activation>
void Block<Norm, Activation>::backward(Stream& stream, const BlockContext& context, const Tensor& d, const Saved& saved, const Pass& pass) {
  const Scope scope(stream);
  const Tensor dn = stream.empty(d.shape, d.dtype);
  mlp_.backward(stream, d, saved.mlp, dn, pass);
  norm2_.backward(stream, dn, saved.norm2, d, true);
  attention_.backward(stream, d, context.sequence, context.rope, saved.attention, dn, pass);
  norm1_.backward(stream, dn, saved.norm1, d, true);
}

template <class Norm, class Activation>
void Block<Norm, Activation>::visit(Visitor& visitor) {
  norm1_.visit(visitor), attention_.visit(visitor), norm2_.visit(visitor), mlp_.visit(visitor);
}

template class Block<RmsNorm, SwiGlu>;
template class Block<LayerNorm, Gelu>;

}  // namespace octet::nn
