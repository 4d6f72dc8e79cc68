#include "octet/nn/attention.hpp"

namespace octet::nn {
namespace {

std::int64_t qkv_width(const Attention::Config& c) { return (c.heads + 2 * c.kv_heads) * c.head_dim; }

ops::QkvShape shape_of(const Attention::Config& c, std::int64_t sequence) {
  return {.heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .sequence = sequence};
}

}  // namespace

Attention::Attention(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site)
    : config_(c),
      qkv_(path + ".qkv", {.in = c.width, .out = qkv_width(c), .bias = c.qkv_bias}, precision, site),
      out_(path + ".out", {.in = c.heads * c.head_dim, .out = c.width, .bias = c.out_bias, .init = {Init::Kind::normal, c.out_deviation}},
           precision, site) {}

void Attention::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                        Saved* saved) {
  const Scope scope(stream);
  const DType dtype = qkv_.activations();
  const Region region = saved != nullptr ? pass.keep : Region(Lifetime::scratch);
  const std::int64_t tokens = x.rows.rows();
  const auto heads = shape_of(config_, context.sequence);
  const Tensor& starts = context.document_starts;
  const Tensor qkv = stream.empty({tokens, qkv_width(config_)}, dtype, region, Category::activations);
  const Tensor o = stream.empty({tokens, config_.heads * config_.head_dim}, dtype, region, Category::activations);
  const Tensor lse = stream.empty({config_.heads, tokens}, DType::f32, region, Category::activations);

  qkv_.forward(stream, x, qkv, pass, saved ? &saved->qkv_linear : nullptr);
  if (config_.rope) ops::rope_forward(stream, {.qkv = qkv, .heads = heads, .table = context.rope, .document_starts = starts});
  ops::attention_forward(stream, {.qkv = qkv, .o = o, .lse = lse, .heads = heads, .document_starts = starts});
  stream.observe(out_.path(), "x", o);
  const QTensor operands = out_.quantize_input(stream, o, pass, saved != nullptr);
  if (y) out_.forward(stream, operands, y, pass, nullptr);
  if (saved != nullptr) saved->out_linear.x = operands.cols;
  if (saved != nullptr) saved->qkv = qkv, saved->o = o, saved->lse = lse;
}

void Attention::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const auto heads = shape_of(config_, context.sequence);
  const Tensor& starts = context.document_starts;
  const Tensor d_o = stream.empty(saved.o.shape, saved.o.dtype), dqkv = stream.empty(saved.qkv.shape, saved.qkv.dtype);
  {
    const Scope inner(stream);
    out_.backward(stream, out_.quantize_gradient(stream, dy, pass), saved.out_linear, d_o);
  }
  ops::attention_backward(
      stream, {.d_o = d_o, .o = saved.o, .qkv = saved.qkv, .lse = saved.lse, .dqkv = dqkv, .heads = heads, .document_starts = starts});
  if (config_.rope) {
    ops::Sink sink = qkv_.gradient_sink(stream, dy.shape[0], pass, dqkv);
    ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = sink, .document_starts = starts});
    qkv_.backward(stream, sink, saved.qkv_linear, dx);
  } else {
    qkv_.backward(stream, qkv_.quantize_gradient(stream, dqkv, pass), saved.qkv_linear, dx);
  }
}

void Attention::visit(Visitor& visitor) { qkv_.visit(visitor), out_.visit(visitor); }

}  // namespace octet::nn
