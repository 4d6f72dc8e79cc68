#include "octet/nn/fused_qkv.hpp"

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

std::int64_t qkv_width(const AttentionConfig& c) { return (c.heads + 2 * c.kv_heads) * c.head_dim; }

// Rows of queries, then of keys, then of values, of the own heads. Keys and values may be copies.
Cut cut_of_heads(const Partition& p, const AttentionConfig& whole, std::int64_t columns) {
  const std::int64_t row = whole.head_dim * columns;
  const IndexRange queries = own_range(p, whole.heads);
  const KeyHeads keys = own_key_heads(p, whole.kv_heads);
  const auto heads = [&](std::int64_t first, const IndexRange& part) {
    const std::int64_t n = part.count * row;
    return CutPiece{n, (first + part.first) * row, n, n};
  };
  Cut out{.whole = columns > 1 ? Shape{qkv_width(whole), columns} : Shape{qkv_width(whole)},
          .pieces = {heads(0, queries), heads(whole.heads, keys.heads), heads(whole.heads + whole.kv_heads, keys.heads)}};
  out.copies = keys.copies, out.first_copy = keys.first_copy;
  out.alone = (queries.count + 2 * (keys.heads.count / keys.copies)) * row;  // a head that has copies is the only one
  return out;
}

Linear::Config qkv_config(const Partition& p, const AttentionConfig& own, const AttentionConfig& whole) {
  return {.in = whole.width,
          .out = qkv_width(own),
          .bias = whole.qkv_bias,
          .cut = cut_of_heads(p, whole, whole.width),
          .bias_cut = cut_of_heads(p, whole, 1)};
}

}  // namespace

FusedQkv::FusedQkv(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole, scaling::Precision& precision,
                   const scaling::Site& site, Partition& p)
    : partition_(p),
      config_(own),
      qkv_(path + ".qkv", qkv_config(p, own, whole), precision, site),
      norms_(make_head_norms(path, own, whole, precision, p)),
      clip_(own.clip) {}

ops::QkvShape FusedQkv::shape(const BlockContext& context) const {
  return {.heads = config_.heads,
          .kv_heads = config_.kv_heads,
          .head_dim = config_.head_dim,
          .sequence = context.sequence,
          .part = context.part,
          .score_factor = config_.score_factor};
}

void FusedQkv::forward(Stream& stream, const QTensor& x, const BlockContext&, const Tensor& qkv, const scaling::Pass& pass,
                       QkvSaved* saved) {
  qkv_.forward(stream, x, qkv, pass, saved ? &saved->first : nullptr);
  norms_->forward(stream, qkv, pass, saved);
  const Tensor outside = clip_.forward(stream, qkv, saved ? pass.keep : Region(Lifetime::scratch), saved != nullptr);
  if (saved) saved->outside = outside;
}

// Without codes, operands are views of dqkv.
Region FusedQkv::gradient_region(const scaling::Pass& pass) const {
  return qkv_.spec(Operand::gradient, pass).quantizes() ? Region(Lifetime::scratch) : pass.backward_operands();
}

void FusedQkv::backward(Stream& stream, const Tensor& dqkv, const BlockContext& context, const QkvSaved& saved, const Tensor& dx,
                        const scaling::Pass& pass) {
  const auto heads = shape(context);
  const Tensor& starts = context.document_starts;
  const auto product = [&](const ops::Sink& g) { backward_and_reduce(stream, qkv_, partition_, g, saved.first, dx, pass); };
  if (norms_->any() || clip_) {
    ops::Sink turned = ops::plain_sink(dqkv);
    if (config_.rope)
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = turned, .document_starts = starts});
    clip_.backward(stream, dqkv, saved.outside);
    norms_->backward(stream, dqkv, saved);
    product(quantized(stream, qkv_, {.tensor = Operand::gradient, .values = dqkv}, pass, partition_));
  } else if (config_.rope) {
    const bool codes = qkv_.spec(Operand::gradient, pass).quantizes();
    ops::Sink sink = qkv_.operand(stream, {.tensor = Operand::gradient, .tokens = dqkv.shape[0], .values = codes ? Tensor{} : dqkv}, pass);
    fill_divided(stream, partition_, sink, [&](ops::Sink& y) {
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = y, .document_starts = starts});
    });
    product(sink);
  } else {
    product(quantized(stream, qkv_, {.tensor = Operand::gradient, .values = dqkv}, pass, partition_));
  }
}

void FusedQkv::visit(Visitor& visitor) {
  qkv_.visit(visitor);
  norms_->visit(visitor);
}

}  // namespace octet::nn
