#include <span>

#include "octet/bench/subject.hpp"
#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/route/route.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.hpp"

namespace octet::bench {
namespace {

// Sizes for which others publish times: T tokens of width H choose K of E experts of width I.
struct ExpertShape {
  std::int64_t T, H, E, K, I;
  std::string text() const { return format("T {} H {} E {} K {} I {}", T, H, E, K, I); }
};
constexpr ExpertShape published[] = {{16384, 2048, 64, 8, 1024}, {4096, 2048, 64, 6, 1408}};
constexpr ExpertShape for_cpus[] = {{512, 256, 16, 4, 128}};

struct Experts {
  Subject& s;
  std::vector<Row>& rows;
  const ExpertShape& x;

  std::int64_t R(Stream& stream) const { return map(stream).rows(); }
  ops::ExpertMap map(Stream& stream) const { return ops::empty_expert_map(stream, x.T, x.K, x.E, 128, Lifetime::step); }
  Tensor chosen(Stream& stream) const { return s.random.tokens(stream, x.T * x.K, x.E).reshaped({x.T, x.K}); }
  ops::ExpertMap filled_map(Stream& stream) const {
    const ops::ExpertMap m = map(stream);
    ops::expert_map(stream, chosen(stream), m);
    return m;
  }
  Row row(std::string name, std::string precision, double bytes) const {
    return {.group = "experts", .name = std::move(name), .shape = x.text(), .precision = std::move(precision), .amount = bytes};
  }
};

void measure_routing(const Experts& e) {
  const auto& [T, H, E, K, I] = e.x;
  const ops::Routing r{.choices = K};
  const double logits = 4.0 * double(T * E), choices = 8.0 * double(T * K);
  const auto route = [&](Stream& stream) {
    return ops::RouteForward{.logits = e.s.random.values(stream, {T, E}, DType::f32),
                             .chosen = stream.empty({T, K}, DType::i32),
                             .weights = stream.empty({T, K}, DType::f32),
                             .scores = stream.empty({T, E}, DType::f32)};
  };
  add_memory_row(e.s, e.rows, e.row("route forward", "f32", 2 * logits + choices),
                 [&](Stream& stream) -> Launch { return [&stream, r, a = route(stream)] { ops::route_forward(stream, r, a); }; });
  add_memory_row(e.s, e.rows, e.row("route backward", "f32", 3 * logits + choices), [&](Stream& stream) -> Launch {
    const ops::RouteForward a = route(stream);
    ops::route_forward(stream, r, a);
    return [&stream, r, a, dlogits = stream.empty({T, E}, DType::f32)] {
      ops::route_backward(stream, r,
                          {.logits = a.logits, .scores = a.scores, .chosen = a.chosen, .dweights = a.weights, .dlogits = dlogits});
    };
  });
  Stream shapes(Device::null, e.s.stream.target());
  add_memory_row(e.s, e.rows, e.row("expert map", "", choices + 4.0 * double(e.R(shapes))), [&](Stream& stream) -> Launch {
    return [&stream, chosen = e.chosen(stream), map = e.map(stream)] { ops::expert_map(stream, chosen, map); };
  });
  add_memory_row(e.s, e.rows, e.row("combine", "bf16", 2.0 * double((K + 1) * T * H)), [&](Stream& stream) -> Launch {
    const ops::ExpertMap map = e.filled_map(stream);
    return [&stream, map, x = e.s.random.values(stream, {map.rows(), H}, DType::bf16), y = stream.empty({T, H}, DType::bf16)] {
      ops::combine_rows(stream, x, map, y);
    };
  });
}

void measure_operands(const Experts& e, const PlannedSites& p) {
  const auto& [T, H, E, K, I] = e.x;
  const auto sink_on = [&](Stream& stream, const scaling::Quantizer& q, std::int64_t rows, std::int64_t cols, bool gradient) {
    return ops::make_sink(stream, q.spec(recording),
                          {.shape = {rows, cols},
                           .cols = true,
                           .cols_region = gradient ? Lifetime::scratch : Lifetime::step,
                           .for_gemm = true,
                           .cols_left = gradient});
  };
  Stream shapes(Device::null, e.s.stream.target());
  const std::int64_t R = e.R(shapes);
  const double wide = 4.0 * double(T * K * I);  // gate and up of all rows
  const double x_bytes = sink_bytes(shapes, sink_on(shapes, *p.mlp_in().x, R, H, false)),
               h_bytes = sink_bytes(shapes, sink_on(shapes, *p.mlp_out().x, R, I, false)),
               dx_bytes = sink_bytes(shapes, sink_on(shapes, *p.mlp_in().dy, R, 2 * I, true));
  add_memory_row(e.s, e.rows, e.row("gather", p.recipe, 2.0 * double(T * H) + x_bytes), [&](Stream& stream) -> Launch {
    return [&stream, map = e.filled_map(stream), x = e.s.random.values(stream, {T, H}, DType::bf16),
            y = sink_on(stream, *p.mlp_in().x, R, H, false)]() mutable { ops::gather_rows(stream, x, map, y); };
  });
  add_memory_row(e.s, e.rows, e.row("weighted swiglu forward", p.recipe, wide + h_bytes), [&](Stream& stream) -> Launch {
    return [&stream, map = e.filled_map(stream), x = ops::Saved(e.s.random.values(stream, {R, 2 * I}, DType::bf16)),
            w = e.s.random.values(stream, {T, K}, DType::f32),
            y = sink_on(stream, *p.mlp_out().x, R, I, false)]() mutable { ops::weighted_swiglu_forward(stream, x, w, map, 0, y); };
  });
  add_memory_row(e.s, e.rows, e.row("weighted swiglu backward", p.recipe, 1.5 * wide + dx_bytes), [&](Stream& stream) -> Launch {
    return [&stream, map = e.filled_map(stream), x = ops::Saved(e.s.random.values(stream, {R, 2 * I}, DType::bf16)),
            dy = e.s.random.values(stream, {R, I}, DType::bf16), w = e.s.random.values(stream, {T, K}, DType::f32),
            dw = stream.empty({T, K}, DType::f32), dx = sink_on(stream, *p.mlp_in().dy, R, 2 * I, true)]() mutable {
      ops::weighted_swiglu_backward(stream, {.dy = dy, .x = x, .w = w, .map = map, .dw = dw}, dx);
    };
  });
}

// A random matrix in both orientations.
QTensor quantized(const Experts& e, Stream& stream, const scaling::Quantizer& q, Shape shape, bool left) {
  const Scope scope(stream, Lifetime::micro_batch);
  const Tensor x = e.s.random.values(stream, shape, DType::bf16, Lifetime::micro_batch);
  ops::Sink sink = ops::make_sink(
      stream, q.spec(recording),
      {.shape = shape, .cols = true, .rows_region = Lifetime::step, .cols_region = Lifetime::step, .for_gemm = true, .cols_left = left});
  ops::quantize(stream, x, sink);
  return sink.codes;
}

// The three products of a layer of all experts, [N, K] each; FLOPs are those of the tokens, without padding.
void measure_products(const Experts& e, const PlannedSites& p, const char* layer, const scaling::LinearPlan& plan, std::int64_t N,
                      std::int64_t K) {
  const auto row = [&](const char* product, DType operands, DType result) {
    Row out = e.row(format("{} {}", layer, product), p.recipe, 2.0 * double(e.x.T * e.x.K) * double(N) * double(K));
    out.unit = Unit::flops;
    out.limit = e.s.limits.matrix_flops_per_second(operands, result, e.x.T * e.x.K, N, K);
    return out;
  };
  const auto add = [&](Row out, const Prepare& prepare) {
    out.seconds = measure(e.s.stream, e.s.effort, prepare);
    e.rows.push_back(std::move(out));
  };
  const auto format_of = [](const scaling::Quantizer& q) { return q.spec({}).format; };
  add(row("forward", format_of(*plan.x), DType::bf16), [&](Stream& stream) -> Launch {
    const ops::ExpertMap map = e.filled_map(stream);
    const Quantized x = quantized(e, stream, *plan.x, {map.rows(), K}, false).rows,
                    w = quantized(e, stream, *plan.w, {e.x.E * N, K}, false).rows;
    return [&stream, map, x, w, fast = plan.fast_forward, y = stream.empty({map.rows(), N}, DType::bf16, Lifetime::step)] {
      ops::grouped_gemm(stream, ops::GroupedRowsGemm{.a = x, .stack = w, .groups = map.groups, .d = y, .fast_accumulation = fast});
    };
  });
  add(row("dgrad", format_of(*plan.dy), DType::bf16), [&](Stream& stream) -> Launch {
    const ops::ExpertMap map = e.filled_map(stream);
    const Quantized dy = quantized(e, stream, *plan.dy, {map.rows(), N}, false).rows,
                    w = quantized(e, stream, *plan.w, {e.x.E * N, K}, false).cols;
    return [&stream, map, dy, w, dx = stream.empty({map.rows(), K}, DType::bf16, Lifetime::step)] {
      ops::grouped_gemm(stream, ops::GroupedRowsGemm{.a = dy, .stack = w, .stack_columns = true, .groups = map.groups, .d = dx});
    };
  });
  add(row("wgrad", format_of(*plan.dy), DType::f32), [&](Stream& stream) -> Launch {
    const ops::ExpertMap map = e.filled_map(stream);
    const Quantized dy = quantized(e, stream, *plan.dy, {map.rows(), N}, true).cols,
                    x = quantized(e, stream, *plan.x, {map.rows(), K}, false).cols;
    return [&stream, map, dy, x, dw = e.s.random.values(stream, {e.x.E * N, K}, DType::f32, Lifetime::step)] {
      ops::grouped_gemm(stream, ops::GroupedColumnsGemm{.a = dy, .b = x, .groups = map.groups, .d = dw, .accumulate = true});
    };
  });
}

}  // namespace

void measure_experts(Subject& s, std::vector<Row>& rows) {
  const bool gpu = s.stream.target().device == Device::cuda;
  for (const ExpertShape& shape : gpu ? std::span<const ExpertShape>(published) : for_cpus) {
    const Experts experts{s, rows, shape};
    measure_routing(experts);
    for (const PlannedSites& p : s.planned)
      if (p.activations() == DType::bf16) {
        measure_operands(experts, p);
        measure_products(experts, p, "gate and up", p.mlp_in(), 2 * shape.I, shape.H);
        measure_products(experts, p, "down", p.mlp_out(), shape.H, shape.I);
      }
  }
}

}  // namespace octet::bench
