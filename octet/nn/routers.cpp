#include "octet/nn/routers.hpp"

#include "octet/ops/balance/balance.hpp"

namespace octet::nn {
namespace {

// Row i of [n, S, E], as [S, E].
Tensor part(const Tensor& t, std::int64_t i) {
  const std::int64_t S = t.shape[1], E = t.shape[2];
  return t.reshaped({t.shape[0] * S, E}).rows(i * S, S);
}

}  // namespace

void Routers::allocate(Stream& stream) {
  if (config_.layers == 0) return;
  const auto zeros = [&] { return stream.zeros({config_.layers, config_.experts}, DType::f32, Lifetime::run, Category::optimizer); };
  counts_ = zeros(), sums_ = zeros();
  if (config_.biased || config_.balance.bias_rate > 0) biases_ = zeros();
}

const Routers& Routers::no_routers() {
  static const Routers none;
  return none;
}

Tensor Routers::joint_choices(Stream& stream, Region region) const {
  return counts_jointly() ? stream.empty({config_.experts}, DType::f32, region, Category::activations) : Tensor{};
}

Routers::MicroBatch Routers::begin(Stream& stream, const scaling::Pass& pass, const Begin& b) const {
  MicroBatch m{.all = this,
               .tokens = b.tokens * b.parts.members(),
               .counts = {},
               .sums = {},
               .rows = {},
               .factor = b.factor,
               .loss_scale = b.loss_scale};
  m.records = config_.layers > 0 && pass.records();
  if (!has_loss()) return m;
  const Balance::Over over = config_.balance.over;
  const Shape shape{over == Balance::Over::model ? 1 : config_.layers, over == Balance::Over::sequence ? b.sequences : 1, config_.experts};
  m.rows = {.first = own_range(b.partition, b.tokens).first, .length = b.tokens / shape[1]};
  const auto zeros = [&] {
    const Tensor t = stream.empty(shape, DType::f32, pass.keep, Category::activations);
    clear(stream, t);
    return t;
  };
  m.counts = b.choices ? b.choices.reshaped(shape) : zeros(), m.sums = zeros();
  return m;
}

Tensor Routers::bias(std::int64_t layer) const { return biases_ ? biases_.rows(layer, 1).reshaped({config_.experts}) : Tensor{}; }

void Routers::add(Stream& stream, const MicroBatch& m, std::int64_t layer, const Tensor& chosen, const Tensor& scores) const {
  if (!m.records) return;
  ops::route_load(stream, {.chosen = chosen, .scores = scores, .counts = counts_.rows(layer, 1), .sums = sums_.rows(layer, 1)});
  if (!has_loss()) return;
  const std::int64_t row = config_.balance.over == Balance::Over::model ? 0 : layer;
  ops::route_load(stream, {.chosen = chosen,
                           .scores = scores,
                           .counts = part(m.counts, row),
                           .sums = part(m.sums, row),
                           .relative = relative(),
                           .rows = m.rows});
}

void Routers::join(Stream& stream, const MicroBatch& m, RowExchange& members) const {
  if (m.counts) members.sum(stream, m.counts.reshaped({m.counts.count()}));
}

// The derivative of the loss of a micro-batch by each score of a token, divided by its expert's count.
float Routers::score_factor(const MicroBatch& m) const {
  const auto E = double(config_.experts), K = double(config_.choices), L = double(config_.layers), T = double(m.tokens);
  const double all = config_.balance.loss * T * double(m.factor);
  switch (config_.balance.over) {
    case Balance::Over::model: return float(all * E / (L * T * L * T));
    case Balance::Over::layer: return float(all * E / (T * T) / L);
    case Balance::Over::sequence: {
      const double S = double(m.counts.shape[1]), W = T / S;
      return float(all * E / (K * W * W) / S);
    }
  }
  return 0;
}

Tensor Routers::score_gradient(Stream& stream, const MicroBatch& m, std::int64_t layer) const {
  if (!m.counts) return {};
  const Tensor counts = part(m.counts, config_.balance.over == Balance::Over::model ? 0 : layer);
  const Tensor out = stream.empty(counts.shape, DType::f32);
  ops::balance_gradient(stream, {.counts = counts, .scale = m.loss_scale, .dscores = out, .factor = score_factor(m)});
  return out;
}

void Routers::end_step(Stream& stream, const Tensor& skip) {
  if (biases_ && config_.balance.bias_rate > 0)
    ops::balance_bias(stream, {.counts = counts_, .skip = skip, .bias = biases_, .rate = float(config_.balance.bias_rate)});
}

void Routers::clear_loads(Stream& stream) {
  for (const Tensor& t : {counts_, sums_})
    if (t) clear(stream, t);
}

void Routers::visit_state(StateVisitor& visitor) {
  if (biases_) visitor.until_update("bias", biases_);
}

}  // namespace octet::nn
