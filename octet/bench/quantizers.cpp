#include "octet/bench/subject.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::bench {
namespace {

// Orientations in the regions of training: scratch, or a longer-lived one.
struct Wanted {
  bool cols;
  Lifetime rows_region = Lifetime::scratch, cols_region = Lifetime::scratch;
  bool cols_left = false;
};

void add_quantize(Subject& s, std::vector<Row>& rows, const PlannedSites& p, const std::string& what, const scaling::Quantizer& quantizer,
                  Shape shape, Wanted want) {
  const ops::QuantizeSpec spec = quantizer.spec(recording);
  if (!spec.quantizes()) return;
  const auto sink_on = [spec, shape, want](Stream& stream, const Tensor& x) {
    return ops::make_sink(stream, spec,
                          {.shape = shape,
                           .cols = want.cols,
                           .rows_region = want.rows_region,
                           .cols_region = want.cols_region,
                           .plain = x,
                           .for_gemm = true,
                           .cols_left = want.cols_left});
  };
  Stream shapes(Device::null, s.stream.target());
  const ops::Sink sink = sink_on(shapes, shapes.empty(shape, DType::bf16));
  const double reads_and_codes = sink_bytes(shapes, sink);  // x counts as the plain values: it is read, not written
  add_memory_row(s, rows,
                 {.group = "quantize",
                  .name = format("{} {}", what, want.cols ? "rows + transposed" : "rows"),
                  .shape = to_text(shape),
                  .precision = p.recipe,
                  .amount = reads_and_codes},
                 [&s, sink_on, shape](Stream& stream) -> Launch {
                   const Tensor x = s.random.values(stream, shape, DType::bf16);
                   return [&stream, x, sink = sink_on(stream, x)]() mutable { ops::quantize(stream, x, sink); };
                 });
}

}  // namespace

void measure_quantize(Subject& s, std::vector<Row>& rows) {
  const Shape hidden{s.tokens, s.shape.hidden}, weight{s.sites.mlp_in.out, s.sites.mlp_in.in};
  for (const PlannedSites& p : s.planned) {
    add_quantize(s, rows, p, "x", *p.mlp_out().x, hidden, {.cols = false});
    add_quantize(s, rows, p, "x", *p.mlp_out().x, hidden, {.cols = true, .cols_region = Lifetime::step});
    add_quantize(s, rows, p, "dy", *p.mlp_out().dy, hidden, {.cols = true, .cols_left = true});
    add_quantize(s, rows, p, "w", *p.mlp_in().w, weight, {.cols = true, .rows_region = Lifetime::step, .cols_region = Lifetime::step});
  }
}

}  // namespace octet::bench
