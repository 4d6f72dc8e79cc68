#include "octet/nn/attention.hpp"

#include "octet/ops/columns/columns.hpp"

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
           precision, site),
      saved_o_(path + ".o", c.heads * c.head_dim, precision, c.recomputed),
      norms_(c.head_norm_eps ? std::make_unique<HeadNorms>(path, c, precision) : nullptr) {
  precision.plan_saved_values(path + ".q,k,v", "errors of queries and keys would grow with the scores");
}

Attention::HeadNorms::HeadNorms(const std::string& path, const Config& c, scaling::Precision& precision)
    : q(path + ".q_norm", c.head_dim, *c.head_norm_eps),
      k(path + ".k_norm", c.head_dim, *c.head_norm_eps),
      q_input(path + ".q", c.heads * c.head_dim, precision, c.recomputed),
      k_input(path + ".k", c.kv_heads * c.head_dim, precision, c.recomputed) {}

// Query and key heads are columns of qkv; a norm reads and writes them as rows of their own.
void Attention::normalize(Stream& stream, const Tensor& qkv, const scaling::Pass& pass, Saved* saved) {
  const std::int64_t tokens = qkv.shape[0], d = config_.head_dim;
  const bool saves = saved != nullptr;
  const auto apply = [&](const RmsNorm& norm, const SavedActivation& saving, std::int64_t heads, std::int64_t column) {
    const Scope scope(stream);
    const Tensor rows = stream.empty({tokens, heads * d}, qkv.dtype, saving.region(pass, saves), Category::activations);
    ops::copy_columns(stream, {.from = qkv, .from_column = column, .to = rows, .columns = heads * d});
    RmsNorm::Input input = RmsNorm::input(stream, rows.reshaped({tokens * heads, d}), saves ? pass.keep : Region(Lifetime::scratch));
    ops::Sink normal = plain_sink(stream, input.x.shape, qkv.dtype, scaling::Pass{}, false);
    norm.forward(stream, input, normal);
    ops::copy_columns(stream, {.from = normal.plain.reshaped(rows.shape), .to = qkv, .to_column = column, .columns = heads * d});
    return saves ? HeadInput{saving.save(stream, rows, pass), input.inv_rms} : HeadInput{};
  };
  const HeadInput q = apply(norms_->q, norms_->q_input, config_.heads, 0),
                  k = apply(norms_->k, norms_->k_input, config_.kv_heads, config_.heads * d);
  if (saves) saved->q = q, saved->k = k;
}

void Attention::normalize_backward(Stream& stream, const Tensor& dqkv, const Saved& saved) {
  const auto apply = [&](RmsNorm& norm, const HeadInput& input, std::int64_t column) {
    const Scope scope(stream);
    const Shape one_head{input.inv_rms.count(), config_.head_dim};
    const Tensor rows = stream.empty(input.x.shape, dqkv.dtype), d = rows.reshaped(one_head);
    ops::copy_columns(stream, {.from = dqkv, .from_column = column, .to = rows, .columns = rows.shape[1]});
    norm.backward(stream, d, {values_of(stream, input.x).reshaped(one_head), input.inv_rms, true}, d, false);
    ops::copy_columns(stream, {.from = rows, .to = dqkv, .to_column = column, .columns = rows.shape[1]});
  };
  apply(norms_->q, saved.q, 0);
  apply(norms_->k, saved.k, config_.heads * config_.head_dim);
}

void Attention::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                        Saved* saved) {
  const Scope scope(stream);
  const DType dtype = qkv_.activations();
  const bool saves = saved != nullptr;
  const Region region = saves ? pass.keep : Region(Lifetime::scratch);
  const std::int64_t tokens = x.rows.rows();
  const auto heads = shape_of(config_, context.sequence);
  const Tensor& starts = context.document_starts;
  const Tensor qkv = stream.empty({tokens, qkv_width(config_)}, dtype, region, Category::activations);
  const Tensor o = stream.empty({tokens, out_.in()}, dtype, saved_o_.region(pass, saves), Category::activations);
  const Tensor lse = stream.empty({config_.heads, tokens}, DType::f32, region, Category::activations);

  qkv_.forward(stream, x, qkv, pass, saved ? &saved->qkv_linear : nullptr);
  if (norms_) normalize(stream, qkv, pass, saved);
  if (config_.rope) ops::rope_forward(stream, {.qkv = qkv, .heads = heads, .table = context.rope, .document_starts = starts});
  ops::attention_forward(stream, {.qkv = qkv, .o = o, .lse = lse, .heads = heads, .document_starts = starts});
  stream.observe(out_.path(), "x", o);
  const bool keep = saves && !saved_o_.coded();
  const QTensor operands = y || keep ? out_.quantize_input(stream, o, pass, keep) : QTensor{};
  if (y) out_.forward(stream, operands, y, pass, nullptr);
  if (!saves) return;
  saved->out_linear.x = operands.cols, saved->qkv = qkv, saved->lse = lse;
  saved->o = saved_o_.save(stream, o, pass);
}

void Attention::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const auto heads = shape_of(config_, context.sequence);
  const Tensor& starts = context.document_starts;
  const Tensor d_o = stream.empty(saved.o.shape, saved.o.dtype), dqkv = stream.empty(saved.qkv.shape, saved.qkv.dtype);
  {
    const Scope inner(stream);
    const Tensor o = values_of(stream, saved.o);
    {
      const Scope product(stream), rebuilding(stream, scaling::recomputing.keep);
      Linear::Saved operand = saved.out_linear;
      if (saved.o.coded()) operand.x = out_.rebuild_input(stream, o, scaling::recomputing);
      out_.backward(stream, out_.quantize_gradient(stream, dy, pass), operand, d_o);
    }
    ops::attention_backward(
        stream, {.d_o = d_o, .o = o, .qkv = saved.qkv, .lse = saved.lse, .dqkv = dqkv, .heads = heads, .document_starts = starts});
  }
  if (norms_) {
    ops::Sink turned = ops::make_sink(stream, {.format = dqkv.dtype}, {.shape = dqkv.shape, .dtype = dqkv.dtype, .plain = dqkv});
    if (config_.rope)
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = turned, .document_starts = starts});
    normalize_backward(stream, dqkv, saved);
    qkv_.backward(stream, qkv_.quantize_gradient(stream, dqkv, pass), saved.qkv_linear, dx);
  } else if (config_.rope) {
    ops::Sink sink = qkv_.gradient_sink(stream, dy.shape[0], pass, dqkv);
    ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = sink, .document_starts = starts});
    qkv_.backward(stream, sink, saved.qkv_linear, dx);
  } else {
    qkv_.backward(stream, qkv_.quantize_gradient(stream, dqkv, pass), saved.qkv_linear, dx);
  }
}

void Attention::visit(Visitor& visitor) {
  qkv_.visit(visitor);
  if (norms_) norms_->q.visit(visitor), norms_->k.visit(visitor);
  out_.visit(visitor);
}

}  // namespace octet::nn
