#include "octet/nn/experts.hpp"

#include "octet/nn/operands.hpp"
#include "octet/ops/add/add.hpp"
#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.hpp"

namespace octet::nn {
namespace {

// Blocks of scales along rows then have rows of one expert.
constexpr std::int64_t tile = 128;

scaling::Site of_router(scaling::Site site) {
  site.router = true;
  return site;
}

StackedLinear::Config first_of(const Experts::Config& c) {
  return {.in = c.width, .out = 2 * c.hidden, .matrices = c.number, .used = c.routing.choices, .joined = 2};
}
StackedLinear::Config second_of(const Experts::Config& c) {
  return {.in = c.hidden, .out = c.width, .matrices = c.number, .used = c.routing.choices, .init = {Init::Kind::normal, c.out_deviation}};
}

}  // namespace

Experts::Experts(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : config_(c),
      path_(path),
      router_(path + ".router", {.in = c.width, .out = c.number}, precision, of_router(site)),
      in_(path + ".experts.gate_up", first_of(c), precision, site),
      out_(path + ".experts.down", second_of(c), precision, site),
      h_(path + ".experts.h", c.hidden, precision, c.recomputed),
      recompute_activation_(c.recompute_activation || h_.coded()) {
  check(!p.divides(), "experts {}: members of a partition do not divide experts", path);
  if (c.shared > 0)
    shared_ = std::make_unique<Mlp<SwiGlu>>(path + ".shared",
                                            Mlp<SwiGlu>::Config{.width = c.width,
                                                                .hidden = c.shared,
                                                                .out_deviation = c.out_deviation,
                                                                .recompute_activation = c.recompute_activation,
                                                                .recomputed = c.recomputed},
                                            precision, site, p);
}

// Fills logits, scores, weights, choices and the map. A deferred product of the weights reads the map, too.
void Experts::route(Stream& stream, const QTensor& x, const BlockContext& context, const scaling::Pass& pass, Saved& s, bool saves) {
  const std::int64_t T = x.rows.rows(), E = config_.number, K = config_.routing.choices;
  const Region region = saves ? pass.keep : Region(Lifetime::scratch), of_map = saves ? pass.forward_operands() : region;
  const auto empty = [&](std::int64_t columns, DType type) { return stream.empty({T, columns}, type, region, Category::activations); };
  s.logits = empty(E, DType::f32), s.scores = empty(E, DType::f32), s.weights = empty(K, DType::f32), s.chosen = empty(K, DType::i32);
  s.map = ops::empty_expert_map(stream, T, K, E, tile, of_map);
  const Scope scope(stream);
  router_.forward(stream, x, s.logits, pass, nullptr);
  const Tensor bias = context.routing.all != nullptr ? context.routing.all->bias(config_.layer) : Tensor{};
  ops::route_forward(stream, config_.routing,
                     {.logits = s.logits, .bias = bias, .chosen = s.chosen, .weights = s.weights, .scores = s.scores});
  stream.observe(path_, "weights", s.weights);
  if (pass.records() && context.routing) context.routing.all->add(stream, context.routing, config_.layer, s.chosen, s.scores);
  ops::expert_map(stream, s.chosen, s.map);
}

ops::Sink Experts::gathered(Stream& stream, const StackedLinear& layer, const OperandRequest& request, const Tensor& x,
                            const ops::ExpertMap& map, const scaling::Pass& pass) const {
  OperandRequest all = request;
  all.tokens = map.rows();
  ops::Sink sink = layer.operand(stream, all, pass);
  ops::gather_rows(stream, x, map, sink);
  return sink;
}

// The operand of the second matrices. Of h, what backward needs is kept.
void Experts::activate(Stream& stream, const Tensor& h, bool rows, const scaling::Pass& pass, Saved& s, ops::Sink& hidden,
                       bool saves) const {
  const bool keep = saves && !recompute_activation_;
  if (!rows && !keep) {
    if (saves) s.h = h_.save(stream, h, pass);
    return;
  }
  hidden = out_.operand(stream, {.rows = rows, .cols = keep, .tokens = h.shape[0]}, pass);
  if (saves && h_.coded()) {
    ops::Sink codes = h_.sink(stream, h, pass);
    ops::weighted_swiglu_forward(stream, h, s.weights, s.map, config_.limit, hidden, &codes);
    s.h = {codes.codes.rows, h.dtype};
  } else {
    ops::weighted_swiglu_forward(stream, h, s.weights, s.map, config_.limit, hidden);
    if (saves) s.h = h;
  }
  if (keep) s.out_linear.x = hidden.codes.cols;
}

void Experts::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                      Saved* saved) {
  const Scope scope(stream);
  const bool saves = saved != nullptr;
  Saved s;
  s.in_linear.x = x.cols;
  const Tensor& values = x.rows.codes;  // the router's operand is not quantized
  route(stream, x, context, pass, s, saves);
  const std::int64_t rows = s.map.rows();
  const Tensor h = stream.empty({rows, 2 * config_.hidden}, in_.activations(), h_.region(pass, saves), Category::activations);
  {
    const Scope first(stream);
    const ops::Sink gather = gathered(stream, in_, {.cols = false}, values, s.map, pass);
    in_.forward(stream, gather.codes, s.map.groups, h, pass);
  }
  ops::Sink hidden;
  activate(stream, h, bool(y), pass, s, hidden, saves);
  if (y) {
    const Scope second(stream);
    const Tensor each = stream.empty({rows, config_.width}, y.dtype);
    out_.forward(stream, hidden.codes, s.map.groups, each, pass);
    ops::combine_rows(stream, each, s.map, y);
  }
  if (shared_) {
    const Tensor part = y ? stream.empty(y.shape, y.dtype) : Tensor{};
    const ops::Sink own = quantized(stream, shared_->first(), {.cols = false, .values = values}, pass);
    shared_->forward(stream, own.codes, context, part, pass, saves ? &s.shared : nullptr);
    if (y) ops::add(stream, part, y, y);
  }
  if (y) stream.observe(path_, "y", y);
  if (saves) *saved = s;
}

// dy reaches all K rows of a token unweighted; dhidden is the gradient of the weighted activation.
void Experts::backward_of_second(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dhidden, const scaling::Pass& pass) {
  const Scope scope(stream);
  const ops::Sink d = gathered(stream, out_, {.tensor = Operand::gradient}, dy, saved.map, pass);
  LinearSite::Saved hidden = saved.out_linear;
  if (recompute_activation_) {
    const scaling::Pass again = scaling::recomputing_for(pass);
    ops::Sink made = out_.operand(stream, {.rows = false, .tokens = saved.map.rows()}, again);
    ops::weighted_swiglu_forward(stream, saved.h, saved.weights, saved.map, config_.limit, made);
    hidden.x = made.codes.cols;
  }
  out_.backward_input(stream, d, saved.map.groups, dhidden);
  out_.backward_weight(stream, d, hidden, saved.map.groups, pass.later);
}

void Experts::backward_of_first(Stream& stream, const Tensor& dhidden, const Saved& saved, const Tensor& dweights, const Tensor& dgathered,
                                const scaling::Pass& pass) {
  const Scope scope(stream);
  ops::Sink dh = in_.operand(stream, {.tensor = Operand::gradient, .tokens = saved.map.rows()}, pass);
  ops::weighted_swiglu_backward(
      stream, {.dy = dhidden, .x = saved.h, .w = saved.weights, .map = saved.map, .limit = config_.limit, .dw = dweights}, dh);
  in_.backward_input(stream, dh, saved.map.groups, dgathered);
  const ops::Sink x = gathered(stream, in_, {.rows = false}, saved.in_linear.x.codes, saved.map, scaling::recomputing_for(pass));
  in_.backward_weight(stream, dh, {x.codes.cols}, saved.map.groups, pass.later);
}

// dx = that of the router alone.
void Experts::backward_of_router(Stream& stream, const BlockContext& context, const Saved& saved, const Tensor& dweights, const Tensor& dx,
                                 const scaling::Pass& pass) {
  const Scope scope(stream);
  const Routers::MicroBatch& batch = context.routing;
  const Tensor dlogits = stream.empty(saved.logits.shape, DType::f32, pass.backward_operands(), Category::activations);
  const Tensor dscores = batch ? batch.all->score_gradient(stream, batch, config_.layer) : Tensor{};
  ops::route_backward(stream, config_.routing,
                      {.logits = saved.logits,
                       .scores = saved.scores,
                       .chosen = saved.chosen,
                       .dweights = dweights,
                       .dscores = dscores,
                       .dlogits = dlogits,
                       .z_loss = batch ? batch.all->z_factor(batch) : 0,
                       .z_scale = batch.loss_scale,
                       .relative = batch && batch.all->relative()});
  const ops::Sink d = quantized(stream, router_, {.tensor = Operand::gradient, .values = dlogits}, pass);
  router_.backward(stream, d, saved.in_linear, dx, pass.later);
}

void Experts::backward_of_shared(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                                 const scaling::Pass& pass) {
  if (!shared_) return;
  const Scope scope(stream);
  const Tensor part = stream.empty(dx.shape, dx.dtype);
  Mlp<SwiGlu>::Saved shared = saved.shared;
  const OperandRequest again{.rows = false, .values = saved.in_linear.x.codes};
  shared.in_linear.x = quantized(stream, shared_->first(), again, scaling::recomputing_for(pass)).codes.cols;
  shared_->backward(stream, dy, context, shared, part, pass);
  ops::add(stream, part, dx, dx);
}

void Experts::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                       const scaling::Pass& pass) {
  const Scope scope(stream), rebuilding(stream, scaling::recomputing.keep);
  const std::int64_t rows = saved.map.rows();
  const Tensor dweights = stream.empty(saved.weights.shape, DType::f32), dgathered = stream.empty({rows, config_.width}, dy.dtype);
  {
    const Scope inner(stream);
    const Tensor dhidden = stream.empty({rows, config_.hidden}, dy.dtype);
    backward_of_second(stream, dy, saved, dhidden, pass);
    backward_of_first(stream, dhidden, saved, dweights, dgathered, pass);
  }
  backward_of_router(stream, context, saved, dweights, dx, pass);
  ops::combine_rows(stream, dgathered, saved.map, dx, true);
  backward_of_shared(stream, dy, context, saved, dx, pass);
  stream.observe(path_, "dx", dx);
}

void Experts::visit(Visitor& visitor) {
  router_.visit(visitor), in_.visit(visitor), out_.visit(visitor);
  if (shared_) shared_->visit(visitor);
}

}  // namespace octet::nn
