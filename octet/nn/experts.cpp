#include "octet/nn/experts.hpp"

#include "octet/nn/operands.hpp"
#include "octet/ops/add/add.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.hpp"

namespace octet::nn {
namespace {

// Blocks of scales along rows then have rows of one expert.
constexpr std::int64_t tile = 128;

scaling::Site of_router(scaling::Site site) {
  site.router = true;
  return site;
}

StackedLinear::Config first_of(const Experts::Config& c, const Partition& p) {
  const IndexRange own = c.exchange->own(c.number);
  return {.in = c.width,
          .out = 2 * c.hidden,
          .matrices = own.count,
          .used = c.routing.choices,
          .all = c.number,
          .first = own.first,
          .joined = 2,
          .cut = with_copies(p, own_experts(*c.exchange, c.number, 2 * c.hidden, c.width))};
}
StackedLinear::Config second_of(const Experts::Config& c, const Partition& p) {
  const IndexRange own = c.exchange->own(c.number);
  return {.in = c.hidden,
          .out = c.width,
          .matrices = own.count,
          .used = c.routing.choices,
          .all = c.number,
          .first = own.first,
          .init = {Init::Kind::normal, c.out_deviation},
          .cut = with_copies(p, own_experts(*c.exchange, c.number, c.width, c.hidden))};
}
Mlp<SwiGlu>::Config shared_of(const Experts::Config& c) {
  return {.width = c.width,
          .hidden = c.shared,
          .out_deviation = c.out_deviation,
          .recompute_activation = c.recompute_activation,
          .recomputed = c.recomputed};
}

// A plan promises the work of one round. That of others is not counted.
class RoundWork {
 public:
  RoundWork(Stream& stream, bool counts) : stream_(stream), counts_(counts), before_(stream.work()) {}
  ~RoundWork() {
    if (!counts_) stream_.count(before_ - stream_.work());
  }
  RoundWork(const RoundWork&) = delete;
  RoundWork& operator=(const RoundWork&) = delete;

 private:
  Stream& stream_;
  bool counts_;
  Work before_;
};

}  // namespace

Experts::Experts(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : partition_(p.of_copies()),
      config_(c),
      path_(path),
      router_(path + ".router", {.in = c.width, .out = c.number, .cut = own_copy(partition_, {c.number, c.width})}, precision,
              of_router(site)),
      in_(path + ".experts.gate_up", first_of(c, partition_), precision, site),
      out_(path + ".experts.down", second_of(c, partition_), precision, site),
      h_(path + ".experts.h", c.hidden, precision, c.recomputed),
      recompute_activation_(c.recompute_activation || h_.coded()),
      shared_(path + ".shared", shared_of(c), precision, site, partition_) {}

// A deferred product of the weights reads the map.
ExpertExchange::Choices Experts::choices_of(const Saved& s, const scaling::Pass& pass, bool saves) const {
  const Region keep = saves ? pass.keep : Region(Lifetime::scratch);
  return {.chosen = s.chosen,
          .weights = s.weights,
          .experts = config_.number,
          .tile = tile,
          .of_map = saves ? pass.forward_operands() : keep,
          .keep = keep};
}

// Fills logits, scores, weights and choices, and begins the visit.
void Experts::route(Stream& stream, const QTensor& x, const BlockContext& context, const scaling::Pass& pass, Saved& s, bool saves) {
  const std::int64_t T = x.rows.rows(), E = config_.number, K = config_.routing.choices;
  const Region region = saves ? pass.keep : Region(Lifetime::scratch);
  const auto empty = [&](std::int64_t columns, DType type) { return stream.empty({T, columns}, type, region, Category::activations); };
  s.logits = empty(E, DType::f32), s.scores = empty(E, DType::f32), s.weights = empty(K, DType::f32), s.chosen = empty(K, DType::i32);
  {
    const Scope scope(stream);
    router_.forward(stream, x, s.logits, pass, nullptr);
  }
  const Tensor bias = context.routing.all->bias(config_.layer);
  ops::route_forward(stream, config_.routing,
                     {.logits = s.logits, .bias = bias, .chosen = s.chosen, .weights = s.weights, .scores = s.scores});
  stream.observe(path_, "weights", s.weights);
  if (pass.records()) context.routing.all->add(stream, context.routing, config_.layer, s.chosen, s.scores);
  s.visit = config_.exchange->begin(stream, choices_of(s, pass, saves));
}

ops::Sink Experts::gathered(Stream& stream, const StackedLinear& layer, const OperandRequest& request, const Tensor& x,
                            const ExpertExchange::Visit& visit, const scaling::Pass& pass) const {
  OperandRequest all = request;
  all.tokens = visit.map.rows();
  ops::Sink sink = layer.operand(stream, all, pass);
  if (!sink.spec.quantizes() || !layer.reads_values(request)) {
    config_.exchange->gather(stream, x, visit, sink);
    return sink;
  }
  // A gather of codes leaves values out, which an adapter or forward reads.
  ops::Sink values = ops::plain_sink(sink.plain);
  config_.exchange->gather(stream, x, visit, values);
  ops::quantize(stream, sink.plain, sink);
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
  const ops::Saved kept = h_.saved_in_passing(stream, h, pass, saves, [&](ops::Sink* codes) {
    ops::weighted_swiglu_forward(stream, h, s.visit.weights, s.visit.map, config_.limit, hidden, codes);
  });
  if (saves) s.h = kept;
  if (keep) s.out_linear.x = hidden.codes.cols;
}

// Makes the tensor that the adapter of the second matrices keeps for backward, from h alone.
void Experts::save_of_second(Stream& stream, const Tensor& h, const scaling::Pass& pass, Saved& s) {
  if (!out_.is_adapted()) return;
  const Scope scope(stream);
  ops::Sink hidden = out_.operand(stream, {.cols = false, .tokens = h.shape[0]}, pass);
  ops::weighted_swiglu_forward(stream, h, s.visit.weights, s.visit.map, config_.limit, hidden);
  out_.save(stream, operands_of(hidden), s.visit.map.groups, pass, s.out_linear);
}

// h = x W1^T of the visiting rows.
void Experts::expand(Stream& stream, const Tensor& x, const ExpertExchange::Visit& visit, const Tensor& h, const scaling::Pass& pass,
                     LinearSite::Saved* saved) {
  const Scope scope(stream);
  const ops::Sink gather = gathered(stream, in_, {.cols = false}, x, visit, pass);
  in_.forward(stream, operands_of(gather), visit.map.groups, h, pass, saved);
}

void Experts::forward_of_round(Stream& stream, const Tensor& x, const Tensor& h, const Tensor& y, const scaling::Pass& pass, Saved& s,
                               bool saves) {
  const Scope scope(stream);
  expand(stream, x, s.visit, h, pass, saves ? &s.in_linear : nullptr);
  ops::Sink hidden;
  activate(stream, h, bool(y) || out_.is_adapted(), pass, s, hidden, saves);
  if (!y) {
    if (out_.is_adapted()) out_.save(stream, operands_of(hidden), s.visit.map.groups, pass, s.out_linear);
    return;
  }
  const Tensor each = stream.empty({h.shape[0], config_.width}, y.dtype);
  out_.forward(stream, operands_of(hidden), s.visit.map.groups, each, pass, saves ? &s.out_linear : nullptr);
  config_.exchange->combine(stream, each, s.visit, y);
}

void Experts::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                      Saved* saved) {
  const Scope scope(stream);
  const bool saves = saved != nullptr;
  Saved s;
  s.in_linear.x = x.cols;
  const Tensor& values = x.rows.codes;  // the router's operand is not quantized
  route(stream, x, context, pass, s, saves);
  const Tensor h = stream.empty({s.visit.map.rows(), 2 * config_.hidden}, in_.activations(), h_.region(pass, saves), Category::activations);
  const ExpertExchange::Visit first = s.visit;
  forward_of_round(stream, values, h, y, pass, s, saves);
  for (int round = 1; y && round < s.visit.number(); ++round) {
    const RoundWork work(stream, false);
    config_.exchange->enter(stream, choices_of(s, pass, saves), round, s.visit);
    forward_of_round(stream, values, h, y, pass, s, false);
  }
  s.visit = first;
  shared_.forward(stream, values, context, y, pass, saves ? &s.shared : nullptr);
  if (y) stream.observe(path_, "y", y);
  if (saves) *saved = s;
}

// dy reaches all K rows of a token unweighted; dhidden is the gradient of the weighted activation.
void Experts::backward_of_second(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dhidden, const WeightProduct& weights,
                                 const scaling::Pass& pass) {
  const Scope scope(stream);
  const ops::Sink d = gathered(stream, out_, {.tensor = Operand::gradient}, dy, saved.visit, pass);
  LinearSite::Saved hidden = saved.out_linear;
  if (recompute_activation_) {
    const scaling::Pass again = scaling::recomputing_for(pass);
    ops::Sink made = out_.operand(stream, {.rows = false, .tokens = saved.visit.map.rows()}, again);
    ops::weighted_swiglu_forward(stream, saved.h, saved.visit.weights, saved.visit.map, config_.limit, made);
    hidden.x = made.codes.cols;
  }
  out_.backward_input(stream, d, saved.visit.map.groups, dhidden);
  weights(out_, d, hidden, dhidden);
}

void Experts::backward_of_first(Stream& stream, const Tensor& dhidden, const Saved& saved, const Tensor& dweights, const Tensor& dgathered,
                                const WeightProduct& weights, const scaling::Pass& pass) {
  const Scope scope(stream);
  ops::Sink dh = in_.operand(stream, {.tensor = Operand::gradient, .tokens = saved.visit.map.rows()}, pass);
  ops::weighted_swiglu_backward(
      stream, {.dy = dhidden, .x = saved.h, .w = saved.visit.weights, .map = saved.visit.map, .limit = config_.limit, .dw = dweights}, dh);
  in_.backward_input(stream, dh, saved.visit.map.groups, dgathered);
  const ops::Sink x = gathered(stream, in_, {.rows = false}, saved.in_linear.x.codes, saved.visit, scaling::recomputing_for(pass));
  weights(in_, dh, {x.codes.cols, saved.in_linear.of_adapter}, dgathered);
}

// dx = that of the router alone.
void Experts::backward_of_router(Stream& stream, const BlockContext& context, const Saved& saved, const Tensor& dweights, const Tensor& dx,
                                 const scaling::Pass& pass) {
  const Scope scope(stream);
  const Routers::MicroBatch& batch = context.routing;
  const Tensor dlogits = stream.empty(saved.logits.shape, DType::f32, pass.backward_operands(), Category::activations);
  const Tensor dscores = batch.all->score_gradient(stream, batch, config_.layer);
  ops::route_backward(stream, config_.routing,
                      {.logits = saved.logits,
                       .scores = saved.scores,
                       .chosen = saved.chosen,
                       .dweights = dweights,
                       .dscores = dscores,
                       .dlogits = dlogits,
                       .z_loss = batch.all->z_factor(batch),
                       .z_scale = batch.loss_scale,
                       .relative = batch.all->relative(),
                       .rows = batch.rows});
  const ops::Sink d = quantized(stream, router_, {.tensor = Operand::gradient, .values = dlogits}, pass);
  router_.backward(stream, d, saved.in_linear, dx, pass.later);
}

// From dy to dgathered, and the weights' gradient of the tokens that visit.
void Experts::backward_of_rows(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dweights, const Tensor& dgathered,
                               const WeightProduct& weights, const scaling::Pass& pass) {
  const Scope scope(stream);
  ExpertExchange& exchange = *config_.exchange;
  const Tensor dhidden = stream.empty({dgathered.shape[0], config_.hidden}, dy.dtype),
               here = exchange.weights_here(stream, saved.visit, dweights);
  backward_of_second(stream, dy, saved, dhidden, weights, pass);
  backward_of_first(stream, dhidden, saved, here, dgathered, weights, pass);
  exchange.finish(stream, here, choices_of(saved, pass, true), saved.visit, dweights);
}

void Experts::backward_at_once(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                               const scaling::Pass& pass) {
  const Scope scope(stream);
  const ExpertExchange::Visit& visit = saved.visit;
  const Tensor dweights = stream.empty(saved.weights.shape, DType::f32),
               dgathered = stream.empty({visit.map.rows(), config_.width}, dy.dtype);
  GradientProducts at_once;
  const WeightProduct product = [&](StackedLinear& layer, const ops::Sink& d, const LinearSite::Saved& x, const Tensor& dx_of_layer) {
    layer.backward_weight(stream, d, x, visit.map.groups, pass.later);
    layer.backward_adapter(stream, d, x, visit.map.groups, dx_of_layer, at_once);
  };
  backward_of_rows(stream, dy, saved, dweights, dgathered, product, pass);
  backward_of_router(stream, context, saved, dweights, dx, pass);
  config_.exchange->combine(stream, dgathered, visit, dx, true);
}

std::vector<Parameter*> Experts::of_stacks() {
  std::vector<Parameter*> out = in_.parameters();
  for (Parameter* p : out_.parameters()) out.push_back(p);
  return out;
}

// Products of weights are computed now, since the next round has their operands' memory. dx = that of the rows alone.
void Experts::backward_of_rounds(Stream& stream, const Tensor& dy, const Saved& saved, const Tensor& dweights, const Tensor& dx,
                                 const scaling::Pass& pass) {
  const Scope scope(stream);
  ExpertExchange& exchange = *config_.exchange;
  const bool planned = saved.visit.kept > 0;  // the promised work was done by backward_at_once()
  scaling::Pass now = pass;
  now.later = nullptr;
  const scaling::Pass of_adapters = scaling::recomputing_for(now);
  scaling::Pass again = of_adapters;
  again.keep = Lifetime::scratch;
  Saved s = saved;
  const std::int64_t rows = s.visit.map.rows();
  const Tensor &x = s.in_linear.x.codes, dgathered = stream.empty({rows, config_.width}, dy.dtype);
  RoundProducts products(stream, of_stacks(), planned);
  const WeightProduct product = [&](StackedLinear& layer, const ops::Sink& d, const LinearSite::Saved& of_layer,
                                    const Tensor& dx_of_layer) {
    layer.backward_weight(stream, d, of_layer, s.visit.map.groups, products);
    layer.backward_adapter(stream, d, of_layer, s.visit.map.groups, dx_of_layer, products);
  };
  for (int round = s.visit.kept; round < s.visit.number(); ++round) {
    const Scope of_round(stream), rebuilding(stream, scaling::recomputing.keep);
    const RoundWork work(stream, round == 0);
    {
      const RoundWork repeated(stream, false);
      exchange.enter(stream, choices_of(s, pass, true), round, s.visit);
      if (h_.coded()) {  // values are there until their codes are
        const Shape shape{rows, 2 * config_.hidden};
        ops::Sink codes = h_.sink(stream, {nullptr, shape, in_.activations()}, again);
        const Scope values(stream);
        const Tensor h = codes.plain = stream.empty(shape, in_.activations(), Lifetime::scratch, Category::activations);
        expand(stream, x, s.visit, h, of_adapters, &s.in_linear);
        ops::quantize(stream, h, codes);
        s.h = {codes.codes.rows, h.dtype};
        save_of_second(stream, h, of_adapters, s);
      } else {  // in the memory of those that forward saved
        expand(stream, x, s.visit, saved.h.values, of_adapters, &s.in_linear);
        ops::Sink hidden;
        activate(stream, saved.h.values, false, again, s, hidden, true);
        save_of_second(stream, saved.h.values, of_adapters, s);
      }
    }
    backward_of_rows(stream, dy, s, dweights, dgathered, product, now);
    exchange.combine(stream, dgathered, s.visit, dx);
  }
  const RoundWork work(stream, !planned);
  products.finish(stream);
}

// All behind the rows needs no more memory than in backward_at_once(), where a plan has it.
void Experts::backward_in_rounds(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                                 const scaling::Pass& pass) {
  const Scope scope(stream);
  const Tensor dweights = stream.empty(saved.weights.shape, DType::f32), of_router = stream.empty(dx.shape, dx.dtype);
  backward_of_rounds(stream, dy, saved, dweights, dx, pass);
  if (saved.visit.kept > 0) return;
  const std::vector<Parameter*> stacks = of_stacks();
  for (auto p = stacks.rbegin(); p != stacks.rend(); ++p) sum_done(stream, **p);
  backward_of_router(stream, context, saved, dweights, of_router, pass);
  ops::add(stream, dx, of_router, dx);
}

void Experts::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                       const scaling::Pass& pass) {
  const Scope scope(stream), rebuilding(stream, scaling::recomputing.keep);
  if (saved.visit.kept > 0) backward_at_once(stream, dy, context, saved, dx, pass);
  if (saved.visit.number() > saved.visit.kept) backward_in_rounds(stream, dy, context, saved, dx, pass);
  shared_.backward(stream, dy, saved.in_linear.x.codes, context, saved.shared, dx, pass);
  stream.observe(path_, "dx", dx);
}

void Experts::visit(Visitor& visitor) {
  router_.visit(visitor), in_.visit(visitor), out_.visit(visitor);
  shared_.visit(visitor);
}

}  // namespace octet::nn
