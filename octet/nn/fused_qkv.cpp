#include "octet/nn/fused_qkv.hpp"

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

std::int64_t qkv_width(const AttentionConfig& c) { return (c.heads + 2 * c.kv_heads) * c.head_dim; }

// The columns of one norm of so many heads.
std::int64_t normed_columns(const AttentionConfig& c, std::int64_t heads) { return c.norms_of_all_heads ? heads * c.head_dim : c.head_dim; }

// Rows of queries, then of keys, then of values, of the own heads. Keys and values may be copies.
Cut cut_of_heads(const Partition& p, const AttentionConfig& whole, std::int64_t columns) {
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
      norms_(own.head_norm_eps ? std::make_unique<HeadNorms>(path, own, precision, p) : nullptr),
      clip_(own.clip) {
  check(!p.divides() || !own.norms_of_all_heads, "attention {}: a norm of all heads has columns of every member", path);
}

ops::QkvShape FusedQkv::shape(const BlockContext& context) const {
  return {.heads = config_.heads,
          .kv_heads = config_.kv_heads,
          .head_dim = config_.head_dim,
          .sequence = context.sequence,
          .part = context.part,
          .score_factor = config_.score_factor};
}

FusedQkv::HeadNorms::HeadNorms(const std::string& path, const AttentionConfig& c, scaling::Precision& precision, Partition& p)
    : q(path + ".q_norm", normed_columns(c, c.heads), NormConfig(*c.head_norm_eps, c.head_norm_offset), p),
      k(path + ".k_norm", normed_columns(c, c.kv_heads), NormConfig(*c.head_norm_eps, c.head_norm_offset), p),
      q_input(path + ".q", c.heads * c.head_dim, precision, c.recomputed),
      k_input(path + ".k", c.kv_heads * c.head_dim, precision, c.recomputed) {}

// Query and key heads are columns of qkv; a norm reads and writes them as rows of their own.
void FusedQkv::normalize(Stream& stream, const Tensor& qkv, const scaling::Pass& pass, QkvSaved* saved) {
  const std::int64_t tokens = qkv.shape[0], d = config_.head_dim;
  const bool saves = saved != nullptr;
  const Region region = saves ? pass.keep : Region(Lifetime::scratch);
  const auto apply = [&](const RmsNorm& norm, const SavedActivation& saving, std::int64_t heads, std::int64_t column, Tensor* outside) {
    const Scope scope(stream);
    const Tensor rows = stream.empty({tokens, heads * d}, qkv.dtype, saving.region(pass, saves), Category::activations);
    ops::copy_columns(stream, {.from = qkv, .from_column = column, .to = rows, .columns = heads * d});
    const std::int64_t columns = normed_columns(config_, heads);
    RmsNorm::Input input = RmsNorm::input(stream, rows.reshaped({rows.count() / columns, columns}), region);
    ops::Sink normal = plain_sink(stream, input.x.shape, qkv.dtype, scaling::Pass{}, false);
    norm.forward(stream, input, normal);
    const Tensor bits = clip_.forward(
        stream, {.from = normal.plain.reshaped(rows.shape), .to = qkv, .to_column = column, .columns = heads * d}, region, saves);
    if (saves) *outside = bits;
    return saves ? NormedRows{saving.save(stream, rows, pass), input.inv_rms, {}} : NormedRows{};
  };
  const NormedRows q = apply(norms_->q, norms_->q_input, config_.heads, 0, saves ? &saved->outside.q : nullptr),
                   k = apply(norms_->k, norms_->k_input, config_.kv_heads, query_columns(), saves ? &saved->outside.k : nullptr);
  if (saves) saved->q = q, saved->k = k;
}

void FusedQkv::normalize_backward(Stream& stream, const Tensor& dqkv, const QkvSaved& saved) {
  const auto apply = [&](RmsNorm& norm, const NormedRows& input, std::int64_t column, const Tensor& outside) {
    const Scope scope(stream);
    const Shape one_head{input.inv_rms.count(), norm.weight.shape[0]};
    const Tensor rows = stream.empty(input.x.shape, dqkv.dtype), d = rows.reshaped(one_head);
    clip_.backward(stream, {.from = dqkv, .from_column = column, .to = rows, .columns = rows.shape[1]}, outside);
    norm.backward(stream, d, {values_of(stream, input.x).reshaped(one_head), input.inv_rms, true}, d, false);
    ops::copy_columns(stream, {.from = rows, .to = dqkv, .to_column = column, .columns = rows.shape[1]});
  };
  apply(norms_->q, saved.q, 0, saved.outside.q);
  apply(norms_->k, saved.k, query_columns(), saved.outside.k);
}

void FusedQkv::clip(Stream& stream, const Tensor& qkv, const scaling::Pass& pass, QkvSaved* saved) {
  const bool saves = saved != nullptr;
  const auto apply = [&](std::int64_t column, std::int64_t columns, Tensor QkvSaved::Outside::*outside) {
    const Tensor bits = clip_.forward(stream, {.from = qkv, .from_column = column, .to = qkv, .to_column = column, .columns = columns},
                                      saves ? pass.keep : Region(Lifetime::scratch), saves);
    if (saves) saved->outside.*outside = bits;
  };
  if (!norms_) apply(0, query_columns(), &QkvSaved::Outside::q), apply(query_columns(), key_columns(), &QkvSaved::Outside::k);
  apply(query_columns() + key_columns(), key_columns(), &QkvSaved::Outside::v);
}

void FusedQkv::clip_backward(Stream& stream, const Tensor& dqkv, const QkvSaved& saved) {
  const auto apply = [&](std::int64_t column, std::int64_t columns, const Tensor& outside) {
    clip_.backward(stream, {.from = dqkv, .from_column = column, .to = dqkv, .to_column = column, .columns = columns}, outside);
  };
  if (!norms_) apply(0, query_columns(), saved.outside.q), apply(query_columns(), key_columns(), saved.outside.k);
  apply(query_columns() + key_columns(), key_columns(), saved.outside.v);
}

void FusedQkv::forward(Stream& stream, const QTensor& x, const BlockContext&, const Tensor& qkv, const scaling::Pass& pass,
                       QkvSaved* saved) {
  qkv_.forward(stream, x, qkv, pass, saved ? &saved->first : nullptr);
  if (norms_) normalize(stream, qkv, pass, saved);
  clip(stream, qkv, pass, saved);
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
  if (norms_ || clip_) {
    ops::Sink turned = ops::make_sink(stream, {.format = dqkv.dtype}, {.shape = dqkv.shape, .dtype = dqkv.dtype, .plain = dqkv});
    if (config_.rope)
      ops::rope_backward(stream, {.dqkv = dqkv, .heads = heads, .table = context.rope, .y = turned, .document_starts = starts});
    if (norms_) normalize_backward(stream, dqkv, saved);
    clip_backward(stream, dqkv, saved);
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
  if (norms_) norms_->q.visit(visitor), norms_->k.visit(visitor);
}

}  // namespace octet::nn
