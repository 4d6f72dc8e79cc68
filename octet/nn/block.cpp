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

template <class Norm, class FeedForward>
Block<Norm, FeedForward>::Block(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site,
                                Partition& p)
    : path_(path),
      recompute_(c.recompute),
      norm1_(path + ".norm1", c.attention.width, c.norm, p),
      attention_(path + ".attn", with_recompute(c.attention, c.recompute), precision, site, p),
      attention_end_(path + ".attn_norm", c.attention.width, c.end, p),
      norm2_(path + ".norm2", c.attention.width, c.norm, p),
      mlp_(path + ".mlp", with_recompute(c.mlp, c.recompute), precision, site, p),
      mlp_end_(path + ".mlp_norm", c.attention.width, c.end, p) {}

// Operands of a branch: the norm makes them, of members that divide it those of the own rows, which are then gathered.
template <class Norm, class FeedForward>
template <class Branch>
Gather Block<Norm, FeedForward>::normalized(Stream& stream, Norm& norm, Input& x, const Branch& branch, OperandRequest want,
                                            const scaling::Pass& pass) const {
  want.tokens = x.x.shape[0];
  return gather_produced(stream, branch.first(), branch.partition(), want, pass, [&](ops::Sink& n) { norm.forward(stream, x, n); });
}

// run(all) fills y [T, D] for the own part of a branch; y becomes the own rows of the sum over members.
template <class Norm, class FeedForward>
template <class Run>
void Block<Norm, FeedForward>::reduced(Stream& stream, Partition& partition, const Tensor& y, const Run& run) const {
  if (!y) return run(y);
  const Scope scope(stream);
  const Tensor all = partition.all_rows(stream, y);
  run(all);
  partition.beside().run(stream, [&](Stream& queue) { partition.reduce(queue, all, y); });
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::attend(Stream& stream, const BlockContext& context, Input& x, const Tensor& y, const scaling::Pass& pass,
                                      Saved* saved, bool keep_operand) {
  const Scope scope(stream);
  reduced(stream, attention_.partition(), y, [&](const Tensor& all) {
    const Gather n = normalized(stream, norm1_, x, attention_, {.cols = keep_operand}, pass);
    attention_.partition().beside().run(stream, n.fill);
    attention_.forward(stream, operands_of(n.operands), context, all, pass, saved ? &saved->attention : nullptr);
  });
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::feed(Stream& stream, const BlockContext& context, Input& z, const Tensor& y, const scaling::Pass& pass,
                                    Saved* saved, bool keep_operand) {
  const Scope scope(stream);
  reduced(stream, mlp_.partition(), y, [&](const Tensor& all) {
    const Gather n = normalized(stream, norm2_, z, mlp_, {.cols = keep_operand}, pass);
    mlp_.partition().beside().run(stream, n.fill);
    mlp_.forward(stream, operands_of(n.operands), context, all, pass, saved ? &saved->mlp : nullptr);
  });
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::forward(Stream& stream, const BlockContext& context, Input& x, Input& y, const scaling::Pass& pass,
                                       Saved* saved) {
  const Scope scope(stream);
  const bool keep = saved != nullptr, keep_attention = keep && !recompute_.attention, keep_mlp = keep && !recompute_.mlp;
  const Region region = keep && !recompute_.block ? pass.keep : Region(Lifetime::scratch);
  check(!x.branch || (!keep && &x == &y), "{}: sums wait only in one residual stream that nothing is saved of", path_);
  Input own;
  if (!x.branch) own = Norm::input(stream, stream.empty(x.x.shape, x.x.dtype, region, Category::activations), region);
  Input& z = x.branch ? x : own;
  const Tensor branch = x.branch ? x.branch : stream.empty(x.x.shape, x.x.dtype);
  const bool keep_end = keep && !recompute_.block;
  const Tensor a = attention_end_.room(stream, branch, pass, keep_end);
  attend(stream, context, x, a, pass, keep_attention ? saved : nullptr, keep_attention && !recompute_.norm);
  attention_end_.forward(stream, a, branch, pass, keep_end ? &saved->attention_end : nullptr);
  norm2_.add(stream, x.x, branch, z);
  const Tensor m = mlp_end_.room(stream, branch, pass, keep);
  feed(stream, context, z, m, pass, keep_mlp ? saved : nullptr, keep_mlp && !recompute_.norm);
  mlp_end_.forward(stream, m, branch, pass, keep ? &saved->mlp_end : nullptr);
  if (keep) saved->x = x, saved->z = z;
  norm1_.add(stream, z.x, branch, y);
  stream.observe(path_, "y", y.x);
}

// Recomputes the parts of attention that were not kept, and z if it was not.
template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::rebuild_attention(Stream& stream, const BlockContext& context, Saved& s, const scaling::Pass& again) {
  if (recompute_.block) {
    s.z = Norm::input(stream, stream.empty(s.x.x.shape, s.x.x.dtype, again.keep, Category::activations), again.keep);
    const Tensor a = attention_end_.room(stream, s.z.x, again, true);
    attend(stream, context, s.x, a, again, &s, true);
    attention_end_.forward(stream, a, s.z.x, again, &s.attention_end);
    norm2_.add(stream, s.x.x, s.z.x, s.z);
  } else if (recompute_.attention) {
    attend(stream, context, s.x, {}, again, &s, true);
  } else if (recompute_.norm) {
    const Gather n = normalized(stream, norm1_, s.x, attention_, {.rows = false}, again);
    s.attention.qkv.first.x = n.operands.codes.cols, s.attention.gather_x = n.fill;
  }
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::rebuild_mlp(Stream& stream, const BlockContext& context, Saved& s, const scaling::Pass& again) {
  if (recompute_.mlp) {
    feed(stream, context, s.z, {}, again, &s, true);
  } else if (recompute_.norm) {
    const Gather n = normalized(stream, norm2_, s.z, mlp_, {.rows = false}, again);
    s.mlp.in_linear.x = n.operands.codes.cols, s.mlp.gather_x = n.fill;
  }
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::backward(Stream& stream, const BlockContext& context, const Tensor& d, const Saved& saved,
                                        const scaling::Pass& pass) {
  const scaling::Pass again = scaling::recomputing_for(pass);
  const Scope scope(stream), rebuilding(stream, again.keep);
  Saved s = saved;
  const Tensor dn = stream.empty(d.shape, d.dtype);
  if (recompute_.block) rebuild_attention(stream, context, s, again);  // z must be there before the MLP's part
  {
    const Scope part(stream), rebuilt(stream, again.keep);
    rebuild_mlp(stream, context, s, again);
    mlp_.backward(stream, mlp_end_.backward(stream, d, s.mlp_end), context, s.mlp, dn, pass);
    norm2_.backward(stream, dn, s.z, d, true);
  }
  const Scope part(stream);
  if (!recompute_.block) rebuild_attention(stream, context, s, again);
  attention_.backward(stream, attention_end_.backward(stream, d, s.attention_end), context, s.attention, dn, pass);
  norm1_.backward(stream, dn, s.x, d, true);
}

template <class Norm, class FeedForward>
void Block<Norm, FeedForward>::visit(Visitor& visitor) {
  const auto branch = [&](Norm& norm, auto& layers, BranchEnd& end, bool recomputed) {
    norm.visit(visitor);
    visitor.members(layers.partition());
    if (layers.partition().divides()) visitor.gathers(layers.first(), recompute_.norm && !recomputed);
    layers.visit(visitor), end.visit(visitor);
  };
  branch(norm1_, attention_, attention_end_, recompute_.attention), branch(norm2_, mlp_, mlp_end_, recompute_.mlp);
}

template class Block<RmsNorm, MlpOrExperts>;
template class Block<NoNorm, MlpOrExperts>;
template class Block<LayerNorm, Mlp<Gelu>>;

}  // namespace octet::nn
