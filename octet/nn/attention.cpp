#include "octet/nn/attention.hpp"

#include "octet/nn/branch.hpp"
#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

std::int64_t qkv_width(const Attention::Config& c) { return (c.heads + 2 * c.kv_heads) * c.head_dim; }

// The columns of one norm of so many heads.
std::int64_t normed_columns(const Attention::Config& c, std::int64_t heads) {
  return c.norms_of_all_heads ? heads * c.head_dim : c.head_dim;
}

ops::QkvShape shape_of(const Attention::Config& c, const BlockContext& context) {
  return {.heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .sequence = context.sequence, .part = context.part};
}

Attention::Config with_own_heads(Attention::Config c, const Partition& p) {
  c.heads = own_part(p, c.heads).count, c.kv_heads = own_key_heads(p, c.kv_heads).heads.count;
  return c;
}

// Rows of queries, then of keys, then of values, of the own heads. Keys and values may be copies.
Cut cut_of_heads(const Partition& p, const Attention::Config& whole, std::int64_t columns) {
  const std::int64_t row = whole.head_dim * columns;
  const Part queries = own_part(p, whole.heads);
  const HeadPart keys = own_key_heads(p, whole.kv_heads);
  const auto heads = [&](std::int64_t first, const Part& part) {
    const std::int64_t n = part.count * row;
    return CutPiece{n, (first + part.first) * row, n, n};
  };
  Cut out{.whole = columns > 1 ? Shape{qkv_width(whole), columns} : Shape{qkv_width(whole)},
          .pieces = {heads(0, queries), heads(whole.heads, keys.heads), heads(whole.heads + whole.kv_heads, keys.heads)}};
  out.copies = keys.copies, out.first_copy = keys.first_copy;
  out.alone = (queries.count + 2 * (keys.heads.count / keys.copies)) * row;  // a head that has copies is the only one
  return out;
}

Linear::Config qkv_config(const Partition& p, const Attention::Config& whole) {
  return {.in = whole.width,
          .out = qkv_width(with_own_heads(whole, p)),
          .bias = whole.qkv_bias,
          .cut = cut_of_heads(p, whole, whole.width),
          .bias_cut = cut_of_heads(p, whole, 1)};
}

Linear::Config out_config(const Partition& p, const Attention::Config& whole) {
  const std::int64_t columns = whole.heads * whole.head_dim;
  return {.in = own_part(p, columns).count,
          .out = whole.width,
          .bias = whole.out_bias,
          .init = {Init::Kind::normal, whole.out_deviation},
          .cut = own_columns(p, {whole.width, columns})};
}

}  // namespace

Attention::Attention(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : partition_(p),
      config_(with_own_heads(c, p)),
      qkv_(path + ".qkv", qkv_config(p, c), precision, site),
      product_(
          make_dot_product(precision.plan_attention({.path = path + ".scores", .layer = site.layer, .layers = site.layers}), c.rope, p)),
      out_(path + ".out", out_config(p, c), precision, site),
      saved_o_(path + ".o", out_.in(), precision, c.recomputed),
      norms_(c.head_norm_eps ? std::make_unique<HeadNorms>(path, config_, precision, p) : nullptr) {
  check(!p.divides() || !c.norms_of_all_heads, "attention {}: a norm of all heads has columns of every member", path);
  check(!p.divides() || !c.out_bias, "attention {}: a bias of the output would be added by every member", path);
  precision.plan_saved_values(path + ".q,k,v", "errors of queries and keys would grow with the scores");
}

Attention::HeadNorms::HeadNorms(const std::string& path, const Config& c, scaling::Precision& precision, Partition& p)
    : q(path + ".q_norm", normed_columns(c, c.heads), *c.head_norm_eps, p),
      k(path + ".k_norm", normed_columns(c, c.kv_heads), *c.head_norm_eps, p),
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
    const std::int64_t columns = normed_columns(config_, heads);
    RmsNorm::Input input =
        RmsNorm::input(stream, rows.reshaped({rows.count() / columns, columns}), saves ? pass.keep : Region(Lifetime::scratch));
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
    const Shape one_head{input.inv_rms.count(), norm.weight.shape[0]};
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
  const auto heads = shape_of(config_, context);
  const Tensor qkv = stream.empty({tokens, qkv_width(config_)}, dtype, product_->values_region(pass, saves), Category::activations);
  const bool keep = saves && !saved_o_.coded();
  const Region region_of_o =
      keep && !out_.spec(Operand::activation, pass).quantizes() ? pass.forward_operands() : saved_o_.region(pass, saves);
  const Tensor o = stream.empty({tokens, out_.in()}, dtype, region_of_o, Category::activations);
  const Tensor lse = stream.empty({config_.heads, tokens}, DType::f32, region, Category::activations);

  qkv_.forward(stream, x, qkv, pass, saved ? &saved->qkv_linear : nullptr);
  if (norms_) normalize(stream, qkv, pass, saved);
  product_->forward(stream, heads, context, qkv, o, lse, pass, saves ? &saved->product : nullptr);
  stream.observe(out_.path(), "x", o);
  const QTensor operands = y || keep ? quantized(stream, out_, {.cols = keep, .values = o}, pass, partition_).codes : QTensor{};
  if (y) out_.forward(stream, operands, y, pass, nullptr);
  if (!saves) return;
  saved->out_linear.x = operands.cols, saved->lse = lse;
  saved->o = saved_o_.save(stream, o, pass);
}

void Attention::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const auto heads = shape_of(config_, context);
  const Tensor& starts = context.document_starts;
  const bool codes = qkv_.spec(Operand::gradient, pass).quantizes();  // otherwise operands are views of dqkv
  const Tensor d_o = stream.empty(saved.o.shape, saved.o.dtype),
               dqkv = stream.empty({saved.lse.shape[1], qkv_width(config_)}, saved.o.dtype,
                                   codes ? Region(Lifetime::scratch) : pass.backward_operands());
  {
    const Scope inner(stream);
    const Tensor o = values_of(stream, saved.o);
    backward_of_branch(stream, out_, partition_, dy, saved.out_linear, saved.gather_x, d_o, pass, [&](Linear::Saved& operand) {
      if (!saved.o.coded()) return;
      const Tensor x = out_.spec(Operand::activation, pass).quantizes() ? o : lasting(stream, o, pass.backward_operands());
      operand.x = quantized(stream, out_, {.rows = false, .values = x}, scaling::recomputing_for(pass), partition_).codes.cols;
    });
    product_->backward(stream, heads, context, {.d_o = d_o, .o = o, .lse = saved.lse, .dqkv = dqkv}, saved.product, pass);
  }
  const auto product = [&](const ops::Sink& g) { backward_and_reduce(stream, qkv_, partition_, g, saved.qkv_linear, dx, pass); };
  if (norms_) {
    ops::Sink turned = ops::make_sink(stream, {.format = dqkv.dtype}, {.shape = dqkv.shape, .dtype = dqkv.dtype, .plain = dqkv});
    if (config_.rope)
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = turned, .document_starts = starts});
    normalize_backward(stream, dqkv, saved);
    product(quantized(stream, qkv_, {.tensor = Operand::gradient, .values = dqkv}, pass, partition_));
  } else if (config_.rope) {
    ops::Sink sink = qkv_.operand(stream, {.tensor = Operand::gradient, .tokens = dqkv.shape[0], .values = codes ? Tensor{} : dqkv}, pass);
    fill_divided(stream, partition_, sink, [&](ops::Sink& y) {
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = y, .document_starts = starts});
    });
    product(sink);
  } else {
    product(quantized(stream, qkv_, {.tensor = Operand::gradient, .values = dqkv}, pass, partition_));
  }
}

void Attention::visit(Visitor& visitor) {
  qkv_.visit(visitor);
  if (norms_) norms_->q.visit(visitor), norms_->k.visit(visitor);
  out_.visit(visitor);
}

}  // namespace octet::nn
