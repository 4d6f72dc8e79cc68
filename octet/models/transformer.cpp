#include "octet/models/transformer.hpp"

#include "octet/ops/first_keys/first_keys.hpp"
#include "octet/ops/gemm/gemm.hpp"

namespace octet::models {
namespace {

std::vector<ModelChunk> chunks_or_all(const std::vector<ModelChunk>& chunks, int layers) {
  if (chunks.empty()) return {{0, layers}};
  int end = 0;
  for (const ModelChunk& p : chunks) {
    check(p.first >= end && p.first < p.end && p.end <= layers, "model: a chunk of blocks {} to {} after one to {} of {}", p.first,
          p.end - 1, end - 1, layers);
    end = p.end;
  }
  return chunks;
}

// Where another rank has the head, it is here for its row of the plan and its quantizers.
template <class Head>
Head make_head(const ModelShape& shape, bool used, Parameter& embedding, scaling::Precision& precision, const ModelOptions& options) {
  nn::Partition& p = *options.partition;
  const nn::Objective& o = *options.objective;
  const scaling::Site site{.layers = int(shape.layers)};
  return used && shape.tied ? Head("lm_head", embedding, shape.vocabulary, precision, site, p, o)
                            : Head("lm_head", shape.width, shape.padded_vocabulary(), shape.vocabulary, precision, site, p, o);
}

template <class Block, class BlockConfig>
std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, const BlockConfig& config_of, const ModelOptions& options,
                                                scaling::Precision& precision) {
  const std::int64_t recomputed = options.recompute_layers > 0 ? options.recompute_layers : shape.layers;
  std::vector<std::unique_ptr<Block>> blocks;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    typename Block::Config config = config_of(i);
    config.recompute = i < recomputed ? options.recompute : nn::Recompute{};
    blocks.push_back(std::make_unique<Block>(format("layers.{}", i), config, precision,
                                             scaling::Site{.layer = int(i), .layers = int(shape.layers)}, *options.partition));
  }
  return blocks;
}

// Where another rank has the head, as that. The first `recompute_layers` blocks do not include these.
template <class Layer, class Block, class BlockConfig>
std::vector<std::unique_ptr<Layer>> make_ahead(const ModelShape& shape, const BlockConfig& config_of, const nn::NormConfig& norm,
                                               const ModelOptions& options, scaling::Precision& precision) {
  std::vector<std::unique_ptr<Layer>> out;
  for (std::int64_t i = shape.layers; i < shape.all_layers(); ++i) {
    typename Block::Config config = config_of(i);
    config.recompute = options.recompute_layers > 0 ? nn::Recompute{} : options.recompute;
    out.push_back(std::make_unique<Layer>(format("layers.{}", i), config, norm, precision,
                                          scaling::Site{.layer = int(i), .layers = int(shape.layers)}, *options.partition));
  }
  return out;
}

}  // namespace

template <class Block, class Norm>
Transformer<Block, Norm>::Transformer(const ModelShape& shape, const BlockConfig& config, float norm_offset, std::int64_t learned_positions,
                                      const ModelOptions& options, scaling::Precision& precision)
    : partition_(*options.partition),
      sequences_(*options.sequences),
      shape_(shape),
      chunks_(chunks_or_all(options.chunks, int(shape.layers))),
      embedding_(shape, learned_positions, !embeds(chunks_.front()), partition_),
      blocks_(make_blocks<Block>(shape, config, options, precision)),
      ahead_(make_ahead<Ahead, Block>(shape, config, {shape.norm_eps, norm_offset}, options, precision)),
      norm_("norm", shape.width, {shape.norm_eps, norm_offset}, partition_),
      head_(make_head<nn::LanguageHead>(shape, has_head(chunks_.back()), embedding_.table(), precision, options)),
      of_logits_(1 / shape.multipliers.logits_divisor),
      ahead_factor_(float(options.mtp_loss / double(std::max<std::int64_t>(1, shape.mtp_depth)))),
      residual_(options.quantize_residual, shape.width, precision),
      activations_(precision.activations()) {
  const ExpertsShape& e = shape.experts;
  routers_ = nn::Routers(
      {.layers = e.layers_before(shape.all_layers()), .experts = e.number, .choices = e.chosen, .biased = e.biased, .balance = e.balance});
  declare_uses();
  check(!partition_.divides() || !options.quantize_residual, "model: {} has parts that members cannot divide", shape.family);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::declare_uses() {
  if (embeds(chunks_.front())) embedding_.table().gradient.add_use(GradientUse::sum, embedding_pass);
  check(ahead_.empty() || (!embedding_.learns_positions() && shape_.multipliers.logits_divisor == 1),
        "model: {} has parts without multi-token prediction", shape_.family);
  if (!has_head(chunks_.back())) return;
  for (std::size_t i = 0; i < ahead_.size(); ++i) embedding_.table().gradient.add_use(GradientUse::sum, ahead_pass), head_.add_loss();
}

// In scratch, or empty without windows.
template <class Block, class Norm>
Tensor Transformer<Block, Norm>::first_keys(Stream& stream, const TokenBatch& batch) const {
  if (!shape_.window) return {};
  const Tensor keys = stream.empty({batch.tokens.count()}, DType::i32);
  ops::first_keys(
      stream,
      {.starts = batch.document_starts, .window = shape_.window.tokens, .sequence = batch.sequence, .part = batch.part, .keys = keys});
  return keys;
}

template <class Block, class Norm>
nn::BlockContext Transformer<Block, Norm>::context(const TokenBatch& batch, const Tensor& first_keys,
                                                   const nn::Routers::MicroBatch& routing, int block) const {
  check(!batch.part || sequences_.divides(), "model: a part of each sequence needs members that have the others");
  nn::BlockContext out{batch.sequence, rope_, batch.document_starts, batch.part, &sequences_, routing, batch.cache, block};
  if (!shape_.window.in_layer(block)) return out;
  out.window = shape_.window.tokens, out.first_keys = first_keys, out.rope = window_rope_;
  return out;
}

template <class Block, class Norm>
ModelChunk Transformer<Block, Norm>::chunk_of(const StageBoundary& p) const {
  check(p.number >= 0 && p.number < int(chunks_.size()), "model: chunk {} of {}", p.number, chunks_.size());
  const ModelChunk chunk = chunks_[std::size_t(p.number)];
  check(bool(p.in) != embeds(chunk) && bool(p.out) != has_head(chunk),
        "model: blocks {} to {} need an input unless they embed, and an output unless they have the head", chunk.first, chunk.end - 1);
  return chunk;
}

template <class Block, class Norm>
auto Transformer<Block, Norm>::saved_in(Region region) -> Saved& {
  if (saved_.size() <= std::size_t(region.slot)) saved_.resize(std::size_t(region.slot) + 1);
  return saved_[std::size_t(region.slot)];
}

// Slots before the first one may be of something else.
template <class Block, class Norm>
std::vector<std::size_t> Transformer<Block, Norm>::saved_bytes() const {
  for (const Saved& s : saved_)
    if (!s.bytes.empty()) return s.bytes;
  return {};
}

template <class Block, class Norm>
void Transformer<Block, Norm>::allocate(Stream& stream, std::int64_t sequence) {
  check(sequence >= 1 && sequence <= shape_.max_sequence, "model: sequences of {} tokens; {} allows 1 to {}", sequence, shape_.family,
        shape_.max_sequence);
  routers_.allocate(stream);
  if (embedding_.learns_positions()) return;
  rope_ = window_rope_ = ops::rope_table(stream, sequence, shape_.turned_columns(), shape_.rope_theta, shape_.rope_scaling);
  if (const double theta = shape_.window.rope_theta; theta > 0)
    window_rope_ = ops::rope_table(stream, sequence, shape_.turned_columns(), theta, {});
}

template <class Block, class Norm>
Tensor Transformer<Block, Norm>::boundary(Stream& stream, const TokenBatch& batch, Region region) const {
  const Shape shape{nn::own_range(partition_, batch.tokens.count()).count, shape_.width};
  const Category category = region.lifetime == Lifetime::scratch ? Category::temporaries : Category::activations;
  return stream.empty(shape, activations_, region, category);
}

// Memory for the residual stream.
template <class Block, class Norm>
typename Norm::Input Transformer<Block, Norm>::own_rows(Stream& stream, const TokenBatch& batch, Region region) const {
  return Norm::input(stream, boundary(stream, batch, region), region);
}

// Of few rows, residual sums are made by the norms that read them. Not where something else reads them after each block.
template <class Block, class Norm>
bool Transformer<Block, Norm>::sums_wait(const Stream& stream, const Tensor& x) const {
  return x.shape[0] <= ops::few_rows && !residual_.on() && !stream.observed();
}

// Without saved activations, one tensor is the residual stream from the first block to the last: the output, or scratch.
template <class Block, class Norm>
typename Norm::Input Transformer<Block, Norm>::run_blocks(Stream& stream, const TokenBatch& batch, const StageBoundary& place,
                                                          const scaling::Pass& pass) {
  const ModelChunk chunk = chunk_of(place);
  const Tensor rows = place.out ? place.out : boundary(stream, batch, Lifetime::scratch);
  auto x = sums_wait(stream, rows) ? Norm::waiting_input(stream, rows, Lifetime::scratch) : Norm::input(stream, rows, Lifetime::scratch);
  if (place.in) copy(stream, place.in, x.x);
  if (embeds(chunk)) {
    embedding_.forward(stream, batch, batch.tokens, x.x);
    residual_.apply(stream, x.x, pass);
  }
  const Tensor keys = first_keys(stream, batch);
  for (int i = chunk.first; i < chunk.end; ++i) {
    open(stream, i);
    block(i).forward(stream, context(batch, keys, routers_.evaluating(), i), x, x, pass, nullptr);
    if (residual_.apply(stream, x.x, pass)) x.known = false;
  }
  if (!has_head(chunk)) norm_.complete(stream, x);
  return x;
}

template <class Block, class Norm>
void Transformer<Block, Norm>::loss(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums,
                                    const StageBoundary& place) {
  const Scope scope(stream);
  auto x = run_blocks(stream, batch, place, pass);
  if (!has_head(chunk_of(place))) return;
  ops::Sink n = ops::plain_sink(stream.empty(x.x.shape, activations_));
  norm_.forward(stream, x, n);
  of_logits_.apply(stream, n.plain);
  head_.loss(stream, n.plain, batch.for_objective(), sums, pass, {}, {});
}

template <class Block, class Norm>
void Transformer<Block, Norm>::forward(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const nn::LossSums& sums,
                                       const nn::LossFactor& factor, const StageBoundary& place) {
  const auto rows = [&](const Tensor& given) { return given ? Norm::input(stream, given, pass.keep) : own_rows(stream, batch, pass.keep); };
  const auto kept = [&] {
    const std::size_t operands = pass.later != nullptr ? stream.arena().mark(pass.forward_operands()).bytes : 0;
    return stream.arena().mark(pass.keep).bytes + operands;
  };
  Saved& saved = saved_in(pass.keep);
  const ModelChunk chunk = saved.chunk = chunk_of(place);
  const std::size_t count = std::size_t(chunk.end - chunk.first);
  saved.blocks.assign(count, {}), saved.ends.assign(count, {}), saved.bytes.assign(count, 0);
  const std::int64_t tokens = batch.tokens.count();
  saved.routing = routers_.begin(stream, pass,
                                 {.partition = partition_,
                                  .parts = sequences_,
                                  .tokens = tokens,
                                  .sequences = tokens / batch.sequence,
                                  .factor = factor.constant,
                                  .loss_scale = factor.loss_scale,
                                  .choices = place.choices});
  auto x = rows(place.in);
  if (embeds(chunk)) embedding_.forward(stream, batch, batch.tokens, x.x);
  const Scope scope(stream);
  const Tensor keys = first_keys(stream, batch);
  for (std::size_t i = 0; i < count; ++i) {
    const int number = chunk.first + int(i);
    const std::size_t begin = kept();
    auto y = rows(i + 1 == count ? place.out : Tensor{});
    open(stream, number);
    block(number).forward(stream, context(batch, keys, saved.routing, number), x, y, pass, &saved.blocks[i]);
    saved.ends[i] = stream.arena().mark(pass.keep), saved.bytes[i] = kept() - begin;
    x = y;
  }
  if (!has_head(chunk)) return;
  saved.dn = boundary(stream, batch, pass.keep), saved.norm = x;
  ops::Sink n = ops::plain_sink(ahead_.empty() ? stream.empty(x.x.shape, activations_)
                                               : stream.empty(x.x.shape, activations_, pass.keep, Category::activations));
  norm_.forward(stream, saved.norm, n);
  stream.observe("norm", "y", n.plain);
  of_logits_.apply(stream, n.plain);
  head_.loss(stream, n.plain, batch.for_objective(), sums, pass, factor, saved.dn);
  of_logits_.apply(stream, saved.dn);
  predict_ahead(stream, batch, n.plain, keys, pass, sums, factor, saved);
}

// n: the head's input, in the pass's region.
template <class Block, class Norm>
void Transformer<Block, Norm>::predict_ahead(Stream& stream, const TokenBatch& batch, const Tensor& n, const Tensor& keys,
                                             const scaling::Pass& pass, const nn::LossSums& sums, const nn::LossFactor& factor,
                                             Saved& saved) {
  check(batch.ahead.size() >= ahead_.size(), "model: a batch has tokens of {} places ahead, and {} are predicted", batch.ahead.size(),
        ahead_.size());
  saved.ahead.assign(ahead_.size(), {});
  Tensor h = n;
  for (std::size_t k = 0; k < ahead_.size(); ++k) {
    const auto& [tokens, targets] = batch.ahead[k];
    const int number = int(shape_.layers) + int(k);
    const Tensor e = boundary(stream, batch, pass.keep);
    const Tensor next = boundary(stream, batch, k + 1 < ahead_.size() ? pass.keep : Region(Lifetime::scratch));
    embedding_.forward(stream, batch, tokens, e);
    open(stream, number);
    ahead_[k]->forward(stream, context(batch, keys, saved.routing, number), e, h, next, pass, saved.ahead[k]);
    const Tensor dn = saved.ahead[k].dn = boundary(stream, batch, pass.keep);
    head_.loss(stream, next, {targets}, sums.of_tokens_ahead(), pass, {factor.constant * ahead_factor_, factor.loss_scale}, dn);
    h = next;
  }
}

// Adds to the gradient of the head's input.
template <class Block, class Norm>
void Transformer<Block, Norm>::backward_ahead(Stream& stream, const TokenBatch& batch, const Tensor& keys, const scaling::Pass& pass,
                                              const Saved& saved) {
  for (std::size_t k = ahead_.size(); k-- > 0;) {
    const Scope scope(stream);
    const int number = int(shape_.layers) + int(k);
    const Tensor de = boundary(stream, batch, Lifetime::scratch);
    open(stream, number);
    ahead_[k]->backward(stream, context(batch, keys, saved.routing, number), saved.ahead[k], de, k > 0 ? saved.ahead[k - 1].dn : saved.dn,
                        pass);
    embedding_.backward(stream, batch, batch.ahead[k].tokens, de, ahead_pass);
  }
}

template <class Block, class Norm>
void Transformer<Block, Norm>::backward(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, const Tensor& given) {
  const Saved& saved = saved_in(pass.keep);
  const Scope scope(stream);
  const Tensor d = given ? given : boundary(stream, batch, Lifetime::scratch);
  // Joint counts come from the last chunk, whose members have added them up.
  if (has_head(saved.chunk) || !routers_.counts_jointly())
    for (nn::RowExchange* members : {static_cast<nn::RowExchange*>(&partition_), &sequences_})
      routers_.join(stream, saved.routing, *members);
  const Tensor keys = first_keys(stream, batch);
  if (has_head(saved.chunk)) {
    backward_ahead(stream, batch, keys, pass, saved);
    norm_.backward(stream, saved.dn, saved.norm, d, false);
  }
  for (std::size_t i = saved.blocks.size(); i-- > 0;) {
    const int number = saved.chunk.first + int(i);
    stream.arena().release(pass.keep, saved.ends[i]);  // memory for recomputed activations
    open(stream, number);
    block(number).backward(stream, context(batch, keys, saved.routing, number), d, saved.blocks[i], pass);
  }
  if (embeds(saved.chunk)) embedding_.backward(stream, batch, batch.tokens, d, embedding_pass);
}

// The last rows of each sequence, in scratch. Of one member, all rows are x itself.
template <class Block, class Norm>
typename Norm::Input Transformer<Block, Norm>::last_rows(Stream& stream, const TokenBatch& batch, typename Norm::Input& x,
                                                         std::int64_t last) {
  if (last == batch.sequence && !partition_.divides()) return x;
  norm_.complete(stream, x);
  const std::int64_t sequences = batch.tokens.count() / batch.sequence;
  auto ends = Norm::input(stream, stream.empty({sequences * last, shape_.width}, activations_), Lifetime::scratch);
  const Tensor all = partition_.all_rows(stream, x.x);
  partition_.gather(stream, x.x, all);
  for (std::int64_t s = 0; s < sequences; ++s) copy(stream, all.rows((s + 1) * batch.sequence - last, last), ends.x.rows(s * last, last));
  return ends;
}

template <class Block, class Norm>
void Transformer<Block, Norm>::logits(Stream& stream, const TokenBatch& batch, const scaling::Pass& pass, std::int64_t last,
                                      const Tensor& logits, const StageBoundary& place) {
  check(last >= 1 && last <= batch.sequence, "logits: {} tokens of sequences of {}", last, batch.sequence);
  check(!batch.part, "logits: the batch has {} of {} tokens of each sequence; all of them are needed here", batch.sequence,
        batch.part.whole);
  const Scope scope(stream);
  auto x = run_blocks(stream, batch, place, pass);
  if (!has_head(chunk_of(place))) return;
  auto ends = last_rows(stream, batch, x, last);
  ops::Sink n = ops::plain_sink(stream.empty(ends.x.shape, activations_));
  norm_.forward(stream, ends, n);
  of_logits_.apply(stream, n.plain);
  head_.logits(stream, n.plain, logits, pass);
}

template <class Block, class Norm>
void Transformer<Block, Norm>::visit(nn::Visitor& visitor) {
  const bool first = embeds(chunks_.front()), last = has_head(chunks_.back());
  if (first || (last && shared_by_ends() != nullptr)) visitor.parameter(embedding_.table());
  if (first) embedding_.visit_positions(visitor);
  for (const ModelChunk& chunk : chunks_)
    for (int i = chunk.first; i < chunk.end; ++i) visitor.block(i), block(i).visit(visitor);
  for (std::size_t k = 0; last && k < ahead_.size(); ++k) visitor.block(int(shape_.layers) + int(k)), ahead_[k]->visit(visitor);
  visitor.block(-1);
  if (!last) return;
  norm_.visit(visitor);
  head_.visit(visitor);
}

template class Transformer<nn::GatedBlock, nn::RmsNorm>;
template class Transformer<nn::UnnormedBlock, nn::RmsNorm>;
template class Transformer<nn::GeluBlock, nn::LayerNorm>;

}  // namespace octet::models
