#include "octet/models/transformer.hpp"

#include "octet/ops/embedding/embedding.hpp"

namespace octet::models {
namespace {

template <class Head>
Head make_head(const ModelShape& shape, Parameter& embedding, scaling::Precision& precision, nn::Partition& p) {
  const scaling::Site site{.layers = int(shape.layers)};
  return shape.tied ? Head("lm_head", embedding, shape.vocabulary, precision, site, p)
                    : Head("lm_head", shape.width, shape.padded_vocabulary(), shape.vocabulary, precision, site, p);
}

nn::Partition& partition_of(const ModelOptions& options) {
  return options.partition != nullptr ? *options.partition : nn::whole_partition();
}

std::unique_ptr<Parameter> make_positions(std::int64_t positions, std::int64_t width) {
  if (positions == 0) return nullptr;
  auto table = std::make_unique<Parameter>("positions.weight", Shape{positions, width}, Init{}, ParameterRole::position);
  table->gradient.add_use(GradientUse::sum);
  return table;
}

template <class Block>
std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, typename Block::Config config, const ModelOptions& options,
                                                scaling::Precision& precision) {
  const std::int64_t recomputed = options.recompute_layers > 0 ? options.recompute_layers : shape.layers;
  std::vector<std::unique_ptr<Block>> blocks;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    config.recompute = i < recomputed ? options.recompute : nn::Recompute{};
    blocks.push_back(std::make_unique<Block>(format("layers.{}", i), config, precision,
                                             scaling::Site{.layer = int(i), .layers = int(shape.layers)}, partition_of(options)));
  }
  return blocks;
}

ops::TableRows own_table(const nn::Partition& p, const Parameter& table) {
  const std::int64_t rows = table.shape[0];
  return p.divides() ? ops::TableRows{p.member() * rows, p.members() * rows} : ops::TableRows{};
}

}  // namespace

template <class Block, class Norm>
Transformer<Block, Norm>::Transformer(const ModelShape& shape, const typename Block::Config& config, std::int64_t learned_positions,
                                      const ModelOptions& options, scaling::Precision& precision)
    : partition_(partition_of(options)),
      shape_(shape),
      embedding_("embedding.weight", {nn::own_part(partition_, shape.padded_vocabulary()).count, shape.width}, {}, ParameterRole::matrix,
                 nn::own_rows(partition_, {shape.padded_vocabulary(), shape.width})),
      positions_(make_positions(learned_positions, shape.width)),
      blocks_(make_blocks<Block>(shape, config, options, precision)),
      norm_("norm", shape.width, shape.norm_eps, partition_),
      head_(make_head<nn::LanguageHead>(shape, embedding_, precision, partition_)),
      residual_(options.quantize_residual, shape.width, precision),
      activations_(precision.activations()) {
  embedding_.gradient.add_use(GradientUse::sum);
  check(!partition_.divides() || (!positions_ && !options.quantize_residual), "model: {} has parts that members cannot divide",
        shape.family);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::allocate(Stream& stream, std::int64_t sequence) {
  check(sequence >= 1 && sequence <= shape_.max_sequence, "model: sequences of {} tokens; {} allows 1 to {}", sequence, shape_.family,
        shape_.max_sequence);
  if (!positions_) rope_ = ops::rope_table(stream, sequence, shape_.head_dim, shape_.rope_theta, shape_.rope_scaling);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::embed(Stream& stream, const TokenBatch& batch, const Tensor& x) {
  const Scope scope(stream);
  const bool divides = partition_.divides();
  const Tensor all = divides ? stream.empty({batch.tokens.count(), shape_.width}, x.dtype) : x;
  ops::embedding_forward(stream, {.table = embedding_.value.codes,
                                  .tokens = batch.tokens,
                                  .out = all,
                                  .positions = positions_ ? positions_->value.values().rows(0, batch.sequence) : Tensor{},
                                  .document_starts = batch.document_starts,
                                  .descale = embedding_.value.tensor_descale(),
                                  .rows = own_table(partition_, embedding_)});
  if (divides) partition_.reduce_exactly(stream, all, x);
  stream.observe("embedding", "y", x);
}

// Memory for the residual stream: of several members, of their own rows.
template <class Block, class Norm>
typename Norm::Input Transformer<Block, Norm>::own_rows(Stream& stream, const TokenBatch& batch, Region region) const {
  const Shape shape{nn::own_part(partition_, batch.tokens.count()).count, shape_.width};
  const Category category = region.lifetime == Lifetime::scratch ? Category::temporaries : Category::activations;
  return Norm::input(stream, stream.empty(shape, activations_, region, category), region);
}

// Without saved activations, x is the residual stream from the first block to the last.
template <class Block, class Norm>
void Transformer<Block, Norm>::run_blocks(Stream& stream, const TokenBatch& batch, typename Norm::Input& x, const scaling::Pass& pass) {
  embed(stream, batch, x.x);
  residual_.apply(stream, x.x, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    open(stream, int(i));
    blocks_[i]->forward(stream, context(batch), x, x, pass, nullptr);
    if (residual_.apply(stream, x.x, pass)) x.known = false;
  }
}

template <class Block, class Norm>
void Transformer<Block, Norm>::loss(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums) {
  const Scope scope(stream);
  auto x = own_rows(stream, batch, Lifetime::scratch);
  run_blocks(stream, batch, x, pass);
  ops::Sink n = nn::plain_sink(stream, x.x.shape, activations_, pass, false);
  norm_.forward(stream, x, n);
  head_.loss(stream, n.plain, batch.targets, sums, pass, {}, {});
}

template <class Block, class Norm>
void Transformer<Block, Norm>::forward(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums,
                                       const nn::LossFactor& factor) {
  saved_.blocks.assign(blocks_.size(), {}), saved_.ends.assign(blocks_.size(), {}), saved_.bytes.assign(blocks_.size(), 0);
  auto x = own_rows(stream, batch, pass.keep);
  embed(stream, batch, x.x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t begin = stream.arena().mark(pass.keep).bytes;
    auto y = own_rows(stream, batch, pass.keep);
    open(stream, int(i));
    blocks_[i]->forward(stream, context(batch), x, y, pass, &saved_.blocks[i]);
    saved_.ends[i] = stream.arena().mark(pass.keep), saved_.bytes[i] = saved_.ends[i].bytes - begin;
    x = y;
  }
  saved_.dn = stream.empty(x.x.shape, activations_, pass.keep, Category::activations), saved_.norm = x;
  const Scope scope(stream);
  ops::Sink n = nn::plain_sink(stream, x.x.shape, activations_, pass, false);
  norm_.forward(stream, saved_.norm, n);
  stream.observe("norm", "y", n.plain);
  head_.loss(stream, n.plain, batch.targets, sums, pass, factor, saved_.dn);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::backward(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass) {
  const Scope scope(stream);
  const Tensor d = stream.empty(saved_.dn.shape, saved_.dn.dtype);
  norm_.backward(stream, saved_.dn, saved_.norm, d, false);
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    stream.arena().release(pass.keep, saved_.ends[i]);  // memory for recomputed activations
    open(stream, int(i));
    blocks_[i]->backward(stream, context(batch), d, saved_.blocks[i], pass);
  }
  const auto sum = [&](Parameter& p) { return p.gradient.target(stream, GradientUse::sum).data; };
  const Tensor all = partition_.divides() ? stream.empty({batch.tokens.count(), shape_.width}, d.dtype) : d;
  if (partition_.divides()) partition_.gather(stream, d, all);
  ops::embedding_backward(stream, {.dy = all,
                                   .tokens = batch.tokens,
                                   .dtable = sum(embedding_),
                                   .dpositions = positions_ ? sum(*positions_).rows(0, batch.sequence) : Tensor{},
                                   .document_starts = batch.document_starts,
                                   .rows = own_table(partition_, embedding_)});
  embedding_.gradient.done(stream);
  if (positions_) positions_->gradient.done(stream);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::logits(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, std::int64_t last,
                                      const Tensor& logits) {
  check(last >= 1 && last <= batch.sequence, "logits: {} tokens of sequences of {}", last, batch.sequence);
  const Scope scope(stream);
  const std::int64_t sequences = batch.tokens.count() / batch.sequence;
  auto x = Norm::input(stream, stream.empty({batch.tokens.count(), shape_.width}, activations_), Lifetime::scratch);
  auto ends = Norm::input(stream, stream.empty({sequences * last, shape_.width}, activations_), Lifetime::scratch);
  run_blocks(stream, batch, x, pass);
  for (std::int64_t s = 0; s < sequences; ++s) copy(stream, x.x.rows((s + 1) * batch.sequence - last, last), ends.x.rows(s * last, last));
  ops::Sink n = nn::plain_sink(stream, ends.x.shape, activations_, pass, false);
  norm_.forward(stream, ends, n);
  head_.logits(stream, n.plain, logits, pass);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::visit(nn::Visitor& visitor) {
  visitor.parameter(embedding_);
  if (positions_) visitor.parameter(*positions_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) visitor.block(int(i)), blocks_[i]->visit(visitor);
  visitor.block(-1);
  norm_.visit(visitor);
  head_.visit(visitor);
}

template class Transformer<nn::GatedBlock, nn::RmsNorm>;
template class Transformer<nn::GeluBlock, nn::LayerNorm>;

}  // namespace octet::models
