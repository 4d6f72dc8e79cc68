#include "octet/nn/latent_qkv.hpp"

#include "octet/ops/columns/columns.hpp"

namespace octet::nn {

LatentLinear::LatentLinear(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : partition_(p),
      norm_(path + "_a_norm", c.rank, c.norm_eps, p),
      linear_(path + "_b", {.in = c.rank, .out = own_range(p, c.out).count, .cut = own_rows(p, {c.out, c.rank})}, precision, site),
      input_(path + "_a", c.rank, precision, c.recomputed) {}

void LatentLinear::forward(Stream& stream, const ops::ColumnsOf& c, const Tensor& y, const scaling::Pass& pass, NormedRows* saved) {
  const Scope scope(stream);
  const bool saves = saved != nullptr;
  const std::int64_t tokens = y.shape[0];
  const Tensor rows = stream.empty({tokens, rank()}, y.dtype, input_.region(pass, saves), Category::activations);
  ops::copy_columns(stream, {.from = c.of, .from_column = c.first, .to = rows, .columns = rank()});
  RmsNorm::Input input = RmsNorm::input(stream, rows, saves ? pass.keep : Region(Lifetime::scratch));
  ops::Sink normal = linear_.operand(stream, {.cols = saves, .tokens = tokens}, pass);
  norm_.forward(stream, input, normal);
  linear_.forward(stream, operands_of(normal), y, pass, saves ? &saved->linear : nullptr);
  if (saves) saved->x = input_.save(stream, rows, pass), saved->inv_rms = input.inv_rms;
}

Region LatentLinear::gradient_region(const scaling::Pass& pass) const {
  return linear_.spec(Operand::gradient, pass).quantizes() ? Region(Lifetime::scratch) : pass.backward_operands();
}

void LatentLinear::backward(Stream& stream, const Tensor& dy, const NormedRows& saved, const ops::ColumnsOf& dc,
                            const scaling::Pass& pass) {
  const Scope scope(stream);
  const Tensor d = stream.empty({dy.shape[0], rank()}, dy.dtype);
  const ops::Sink g = quantized(stream, linear_, {.tensor = Operand::gradient, .values = dy}, pass, partition_);
  linear_.backward(stream, g, saved.linear, d, pass.later);
  norm_.backward(stream, d, {values_of(stream, saved.x), saved.inv_rms, true}, d, false);
  ops::copy_columns(stream, {.from = d, .to = dc.of, .to_column = dc.first, .columns = rank()});
}

ops::ColumnsOf LatentQueries::forward(Stream& stream, const Tensor& a, const scaling::Pass& pass, NormedRows* saved) {
  const Tensor q = stream.empty({a.shape[0], linear_.out()}, a.dtype);
  linear_.forward(stream, {a}, q, pass, saved);
  return {q};
}

ops::ColumnsOf LatentQueries::gradient(Stream& stream, const Tensor& da, const scaling::Pass& pass) const {
  return {stream.empty({da.shape[0], linear_.out()}, da.dtype, linear_.gradient_region(pass))};
}

void LatentQueries::backward(Stream& stream, const ops::ColumnsOf& dq, const NormedRows& saved, const Tensor& da,
                             const scaling::Pass& pass) {
  linear_.backward(stream, dq.of, saved, {da}, pass);
}

namespace {

std::int64_t query_columns(const AttentionConfig& c) { return c.heads * c.head_dim; }

// Columns of the first layer that all heads share.
std::int64_t shared_columns(const AttentionConfig& c) { return c.latent.q_rank + c.latent.kv_rank + c.latent.turned; }
std::int64_t columns_of_first(const AttentionConfig& c) { return (c.latent.q_rank > 0 ? 0 : query_columns(c)) + shared_columns(c); }

// Rows of the own queries, if they are there, then copies of all others.
Cut cut_of_first(const Partition& p, const AttentionConfig& own, const AttentionConfig& whole) {
  const std::int64_t queries = (columns_of_first(own) - shared_columns(own)) * whole.width, shared = shared_columns(whole) * whole.width,
                     before = columns_of_first(whole) * whole.width - shared;
  Cut out{.whole = {columns_of_first(whole), whole.width}};
  if (queries > 0) out.pieces.push_back({queries, queries * p.member(), queries, queries});
  out.pieces.push_back({shared, before, shared, shared});
  out.alone = queries, out.copies = p.members(), out.first_copy = p.member() == 0;
  return out;
}

LatentLinear::Config latent_of(const AttentionConfig& c, std::int64_t rank, std::int64_t out) {
  return {.rank = rank, .out = out, .norm_eps = c.latent.norm_eps, .recomputed = c.recomputed};
}

std::variant<DirectQueries, LatentQueries> make_queries(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole,
                                                        scaling::Precision& precision, const scaling::Site& site, Partition& p) {
  using Form = std::variant<DirectQueries, LatentQueries>;
  if (own.latent.q_rank == 0) return Form(std::in_place_type<DirectQueries>, query_columns(own));
  return Form(std::in_place_type<LatentQueries>, path + ".q", latent_of(own, own.latent.q_rank, query_columns(whole)), precision, site, p);
}

std::int64_t expanded_columns(const AttentionConfig& c) { return c.heads * (c.head_dim - c.latent.turned + c.latent.value_dim); }

}  // namespace

LatentQkv::LatentQkv(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole, scaling::Precision& precision,
                     const scaling::Site& site, Partition& p)
    : partition_(p),
      config_(own),
      first_(path + ".q_kv_a", {.in = own.width, .out = columns_of_first(own), .cut = cut_of_first(p, own, whole)}, precision, site),
      queries_(make_queries(path, own, whole, precision, site, p)),
      kv_(path + ".kv", latent_of(own, own.latent.kv_rank, expanded_columns(whole)), precision, site, p) {}

ops::LatentHeads LatentQkv::heads(const BlockContext& context) const {
  return {.heads = {.heads = config_.heads,
                    .kv_heads = config_.heads,
                    .head_dim = config_.head_dim,
                    .sequence = context.sequence,
                    .part = context.part,
                    .value_width = config_.latent.value_dim,
                    .score_factor = config_.latent.score_factor},
          .turned = config_.latent.turned,
          .pairs = config_.latent.pairs};
}

// `a`: the first layer's output, or its gradient, which has the shared columns of keys at its end.
ops::LatentArguments LatentQkv::arguments(const BlockContext& context, const ops::ColumnsOf& q, const Tensor& kv, const Tensor& a,
                                          const Tensor& qkv) const {
  return {.q = q,
          .kv = kv,
          .k = {a, first_latent() + config_.latent.kv_rank},
          .qkv = qkv,
          .shape = heads(context),
          .table = context.rope,
          .document_starts = context.document_starts,
          .places = context.cache->places()};
}

Latents LatentQkv::latents_of(const Tensor& a) const {
  const LatentConfig& c = config_.latent;
  return {.latent = {a, first_latent()}, .shared = {a, first_latent() + c.kv_rank}, .rank = c.kv_rank, .turned = c.turned};
}

void LatentQkv::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& qkv, const scaling::Pass& pass,
                        QkvSaved* saved) {
  const Scope scope(stream);
  const bool saves = saved != nullptr;
  const std::int64_t tokens = qkv.shape[0];
  const Tensor a = stream.empty({tokens, first_.out()}, qkv.dtype), kv = stream.empty({tokens, kv_.out()}, qkv.dtype);
  first_.forward(stream, x, a, pass, saves ? &saved->first : nullptr);
  context.cache->keep(
      stream, context.block, latents_of(a),
      [this, rope = context.rope, pass](Stream& s, const Latents& l, const Tensor& of_all) { expand(s, l, rope, pass, of_all); });
  const ops::ColumnsOf q = std::visit([&](auto& form) { return form.forward(stream, a, pass, saves ? &saved->q : nullptr); }, queries_);
  kv_.forward(stream, {a, first_latent()}, kv, pass, saves ? &saved->k : nullptr);
  ops::latent_heads_forward(stream, arguments(context, q, kv, a, qkv));
}

// Of stored tokens, in their order from the first one of a sequence on.
void LatentQkv::expand(Stream& stream, const Latents& l, const ops::RopeTable& rope, const scaling::Pass& pass, const Tensor& qkv) {
  const Scope scope(stream);
  const std::int64_t tokens = qkv.shape[0];
  const Tensor kv = stream.empty({tokens, kv_.out()}, qkv.dtype), q = stream.zeros({tokens, query_columns(config_)}, qkv.dtype);
  kv_.forward(stream, l.latent, kv, pass, nullptr);
  ops::latent_heads_forward(stream, {.q = {q}, .kv = kv, .k = l.shared, .qkv = qkv, .shape = heads({.sequence = tokens}), .table = rope});
}

void LatentQkv::backward(Stream& stream, const Tensor& dqkv, const BlockContext& context, const QkvSaved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const std::int64_t tokens = dqkv.shape[0];
  const bool codes = first_.spec(Operand::gradient, pass).quantizes();  // otherwise operands are views of da
  const Tensor da = stream.empty({tokens, first_.out()}, dqkv.dtype, codes ? Region(Lifetime::scratch) : pass.backward_operands()),
               dkv = stream.empty({tokens, kv_.out()}, dqkv.dtype, kv_.gradient_region(pass));
  std::visit(
      [&](auto& form) {
        const ops::ColumnsOf dq = form.gradient(stream, da, pass);
        ops::latent_heads_backward(stream, arguments(context, dq, dkv, da, dqkv));
        form.backward(stream, dq, saved.q, da, pass);
      },
      queries_);
  kv_.backward(stream, dkv, saved.k, {da, first_latent()}, pass);
  const ops::Sink g = quantized(stream, first_, {.tensor = Operand::gradient, .values = da}, pass, partition_);
  backward_and_reduce(stream, first_, partition_, g, saved.first, dx, pass);
}

void LatentQkv::visit(Visitor& visitor) {
  first_.visit(visitor);
  std::visit([&](auto& form) { form.visit(visitor); }, queries_);
  kv_.visit(visitor);
}

}  // namespace octet::nn
