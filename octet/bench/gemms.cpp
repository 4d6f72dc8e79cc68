#include <set>

#include "octet/bench/subject.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"

namespace octet::bench {
namespace {

// Lifetime of an operand in training. It decides the stored orientations: a cached weight has both.
enum class Lives { passing, kept, standing };

// One of a layer's three GEMMs: d[M, N] = a[M, K] b[N, K]^T, where a and b are quantized from stored matrices or their transposes.
struct Product {
  const char* name;
  std::int64_t M, N, K;
  const scaling::Quantizer* a;
  const scaling::Quantizer* b;
  bool a_transposed, b_transposed;
  DType result;
  bool accumulate, fast;
  Lives b_lives;  // a is made right before
};

// x or its transpose as the GEMM reads it.
Quantized operand(Stream& stream, const RandomData& random, const scaling::Quantizer& quantizer, Shape shape, bool transposed, Lives lives,
                  bool left) {
  const ops::QuantizeSpec spec = quantizer.spec(recording);
  const Shape stored = transposed ? Shape{shape[1], shape[0]} : shape;
  if (!spec.quantizes()) return {.codes = random.values(stream, stored, spec.format, Lifetime::step), .transposed = transposed};
  const Scope scope(stream, Lifetime::micro_batch);
  const Tensor x = random.values(stream, stored, DType::bf16, Lifetime::micro_batch);
  const Region region = lives == Lives::passing ? Lifetime::scratch : Lifetime::step;
  const bool both = lives == Lives::standing && !stream.apart_from_host();  // on a GPU the other one changes nothing
  ops::Sink sink = ops::make_sink(stream, spec,
                                  {.shape = stored,
                                   .rows = !transposed || both,
                                   .cols = transposed || both,
                                   .rows_region = region,
                                   .cols_region = region,
                                   .plain = x,
                                   .for_gemm = true,
                                   .cols_left = left});
  ops::quantize(stream, x, sink);
  return transposed ? sink.codes.cols : sink.codes.rows;
}

std::vector<Product> products(const scaling::Site& site, const scaling::LinearPlan& p, std::int64_t T, DType activations, DType gradients,
                              bool adds) {
  return {{"forward", T, site.out, site.in, p.x.get(), p.w.get(), false, false, activations, false, p.fast_forward, Lives::standing},
          {"dgrad", T, site.in, site.out, p.dy.get(), p.w.get(), false, true, activations, false, false, Lives::standing},
          {"wgrad", site.out, site.in, T, p.dy.get(), p.x.get(), true, true, gradients, adds, false, Lives::kept}};
}

Row measured(Subject& s, const std::string& layer, const Product& g) {
  Row row{.group = "gemm", .name = layer + " " + g.name, .shape = format("{}x{}x{}", g.M, g.N, g.K), .unit = Unit::flops};
  row.amount = 2.0 * double(g.M) * double(g.N) * double(g.K);
  row.limit = s.limits.matrix_flops_per_second(g.a->spec({}).format, g.result, g.M, g.N, g.K);
  row.seconds = measure(s.stream, s.effort, [&](Stream& stream) -> Launch {
    const Quantized a = operand(stream, s.random, *g.a, {g.M, g.K}, g.a_transposed, Lives::passing, true);
    const Quantized b = operand(stream, s.random, *g.b, {g.N, g.K}, g.b_transposed, g.b_lives, false);
    const Tensor d = s.random.values(stream, {g.M, g.N}, g.result, Lifetime::step);
    return [&stream, a, b, d, accumulate = g.accumulate, fast = g.fast] {
      ops::gemm(stream, {.a = a, .b = b, .d = d, .accumulate = accumulate, .fast_accumulation = fast});
    };
  });
  return row;
}

// "a, b": all recipes whose GEMMs are the same as those of `p`.
std::string recipes_of(const Subject& s, const PlannedSites& p) {
  std::string out;
  for (const PlannedSites& other : s.planned)
    if (other.layout == p.layout) out += (out.empty() ? "" : ", ") + other.recipe;
  return out;
}

}  // namespace

void measure_gemms(Subject& s, std::vector<Row>& rows) {
  const char* names[] = {"qkv", "attention out", "mlp in", "mlp out", "head"};
  std::set<std::string> seen;
  for (const PlannedSites& p : s.planned) {
    if (!seen.insert(p.layout).second) continue;
    const std::vector<scaling::Site> sites = s.sites.all();
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const std::int64_t tokens = sites[i].head ? s.head_tokens() : s.tokens;
      const DType codes = code_type(sites[i].head ? Storage::f32 : s.gradients);
      const bool coded = is_fp8(codes);
      for (const Product& g :
           products(sites[i], p.plans[i], tokens, p.activations(), coded ? Gradient::scratch_type(s.stream) : codes, !coded)) {
        rows.push_back(measured(s, names[i], g));
        rows.back().precision = recipes_of(s, p);
      }
    }
  }
}

}  // namespace octet::bench
