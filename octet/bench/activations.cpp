#include "octet/bench/subject.hpp"
#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/ops/embedding/embedding.hpp"
#include "octet/ops/gelu/gelu.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/swiglu/swiglu.hpp"

namespace octet::bench {
namespace {

using Forward = void (*)(Stream&, const ops::Saved& x, ops::Sink& y, ops::Sink* codes);
using Backward = void (*)(Stream&, const Tensor& dy, const ops::Saved& x, ops::Sink& dx);

// An activation function between the two layers of an MLP: `inputs` times F columns before it.
struct Function {
  const char* name;
  std::int64_t inputs;
  Forward forward;
  Backward backward;
};

void measure_function(Subject& s, std::vector<Row>& rows, const PlannedSites& p, const Function& f) {
  const Shape in{s.tokens, f.inputs * s.shape.hidden}, out{s.tokens, s.shape.hidden};
  const auto row = [&](const char* pass, double bytes) {
    return Row{.group = "activation", .name = format("{} {}", f.name, pass), .shape = to_text(out), .precision = p.recipe, .amount = bytes};
  };
  const auto sink_on = [&](Stream& stream, const scaling::Quantizer& q, Shape shape, Lifetime cols_region) {
    return ops::make_sink(
        stream, q.spec(recording),
        {.shape = shape, .cols = true, .cols_region = cols_region, .for_gemm = true, .cols_left = cols_region == Lifetime::scratch});
  };
  Stream shapes(Device::null, s.stream.target());
  const double read_in = 2.0 * double(in.count()), read_out = 2.0 * double(out.count());
  const double filled = sink_bytes(shapes, sink_on(shapes, *p.mlp_out().x, out, Lifetime::step));
  const double filled_back = sink_bytes(shapes, sink_on(shapes, *p.mlp_in().dy, in, Lifetime::scratch));
  add_memory_row(s, rows, row("forward", read_in + filled), [&](Stream& stream) -> Launch {
    const Tensor x = s.random.values(stream, in, DType::bf16);
    return
        [&stream, x, run = f.forward, y = sink_on(stream, *p.mlp_out().x, out, Lifetime::step)]() mutable { run(stream, x, y, nullptr); };
  });
  add_memory_row(s, rows, row("backward", read_in + read_out + filled_back), [&](Stream& stream) -> Launch {
    const Tensor x = s.random.values(stream, in, DType::bf16), dy = s.random.values(stream, out, DType::bf16);
    return [&stream, x, dy, run = f.backward, dx = sink_on(stream, *p.mlp_in().dy, in, Lifetime::scratch)]() mutable {
      run(stream, dy, x, dx);
    };
  });
}

// The same with its input saved as codes: encoded in forward's pass, and decoded where backward reads it.
void measure_coded_function(Subject& s, std::vector<Row>& rows, const PlannedSites& p, const Function& f) {
  const Shape in{s.tokens, f.inputs * s.shape.hidden}, out{s.tokens, s.shape.hidden};
  const auto row = [&](const char* pass, double bytes) {
    return Row{.group = "activation", .name = format("{} {}", f.name, pass), .shape = to_text(out), .precision = p.recipe, .amount = bytes};
  };
  const auto sink_of_y = [&](Stream& stream, bool rows_too) {
    return ops::make_sink(stream, p.mlp_out().x->spec(recording),
                          {.shape = out, .rows = rows_too, .cols = !rows_too, .cols_region = Lifetime::step, .for_gemm = true});
  };
  const auto sink_of_dx = [&](Stream& stream) {
    return ops::make_sink(stream, p.mlp_in().dy->spec(recording), {.shape = in, .cols = true, .for_gemm = true, .cols_left = true});
  };
  const auto codes_of = [&](Stream& stream, const Tensor& x) { return ops::saved_sink(stream, x, ops::saved_spec(), Lifetime::step); };
  const auto encoded = [&](Stream& stream) -> ops::Saved {
    const Tensor x = s.random.values(stream, in, DType::bf16);
    ops::Sink codes = codes_of(stream, x);
    ops::quantize(stream, x, codes);
    return {codes.codes.rows, x.dtype};
  };
  Stream shapes(Device::null, s.stream.target());
  const double values = 2.0 * double(in.count()), codes = double(in.count()) * (1 + 1.0 / ops::saved_block);
  add_memory_row(
      s, rows, row("forward, saving codes", values + codes + sink_bytes(shapes, sink_of_y(shapes, true))), [&](Stream& stream) -> Launch {
        const Tensor x = s.random.values(stream, in, DType::bf16);
        return [&stream, x, run = f.forward, to = codes_of(stream, x), y = sink_of_y(stream, true)]() mutable { run(stream, x, y, &to); };
      });
  add_memory_row(
      s, rows, row("forward again, from codes", codes + sink_bytes(shapes, sink_of_y(shapes, false))), [&](Stream& stream) -> Launch {
        return [&stream, x = encoded(stream), run = f.forward, y = sink_of_y(stream, false)]() mutable { run(stream, x, y, nullptr); };
      });
  add_memory_row(s, rows, row("backward, from codes", codes + 2.0 * double(out.count()) + sink_bytes(shapes, sink_of_dx(shapes))),
                 [&](Stream& stream) -> Launch {
                   const Tensor dy = s.random.values(stream, out, DType::bf16);
                   return
                       [&stream, dy, x = encoded(stream), run = f.backward, dx = sink_of_dx(stream)]() mutable { run(stream, dy, x, dx); };
                 });
}

// The table exceeds the cache although a launch touches few rows: launches of one set alternate between `turns` choices of rows.
struct Lookup {
  static constexpr std::int64_t turns = 16;
  Tensor table, tokens, values;

  Lookup(Subject& s, Stream& stream)
      : table(s.random.values(stream, {s.shape.padded_vocabulary(), s.shape.width}, DType::f32)),
        tokens(s.random.tokens(stream, turns * s.tokens, s.shape.vocabulary)),
        values(s.random.values(stream, {turns * s.tokens, s.shape.width}, DType::bf16)) {}
};

void measure_embedding(Subject& s, std::vector<Row>& rows) {
  const Shape shape{s.tokens, s.shape.width};
  const double count = double(shape.count());
  // Forward reads f32 rows and writes bf16; backward reads bf16 and adds to f32 rows.
  add_memory_row(s, rows,
                 {.group = "activation", .name = "embedding forward", .shape = to_text(shape), .precision = "bf16", .amount = 6.0 * count},
                 [&](Stream& stream) -> Launch {
                   return [&stream, l = Lookup(s, stream), T = s.tokens, turn = std::int64_t(0)]() mutable {
                     const std::int64_t at = turn++ % Lookup::turns * T;
                     ops::embedding_forward(stream, {.table = l.table, .tokens = l.tokens.rows(at, T), .out = l.values.rows(at, T)});
                   };
                 });
  add_memory_row(
      s, rows, {.group = "activation", .name = "embedding backward", .shape = to_text(shape), .precision = "bf16", .amount = 10.0 * count},
      [&](Stream& stream) -> Launch {
        return [&stream, l = Lookup(s, stream), T = s.tokens, turn = std::int64_t(0)]() mutable {
          const std::int64_t at = turn++ % Lookup::turns * T;
          ops::embedding_backward(stream, {.dy = l.values.rows(at, T), .tokens = l.tokens.rows(at, T), .dtable = l.table});
        };
      });
}

void measure_cross_entropy(Subject& s, std::vector<Row>& rows) {
  const std::int64_t tokens = s.head_tokens();
  const Shape shape{tokens, s.shape.padded_vocabulary()};
  add_memory_row(
      s, rows,
      {.group = "activation", .name = "cross-entropy", .shape = to_text(shape), .precision = "bf16", .amount = 4.0 * double(shape.count())},
      [&](Stream& stream) -> Launch {
        ops::CrossEntropy a{.logits = s.random.values(stream, shape, DType::bf16),
                            .targets = s.random.tokens(stream, tokens, s.shape.vocabulary),
                            .vocabulary = s.shape.vocabulary};
        a.losses = stream.empty({tokens}, DType::f32), a.loss_sum = stream.zeros({1}, DType::f64),
        a.counted = stream.zeros({1}, DType::i64);
        return [&stream, a] { ops::cross_entropy(stream, a); };
      });
}

}  // namespace

void measure_activations(Subject& s, std::vector<Row>& rows) {
  const bool gated = s.sites.mlp_in.out == 2 * s.shape.hidden;
  const Function function =
      gated
          ? Function{"swiglu", 2,
                     [](Stream& stream, const ops::Saved& x, ops::Sink& y, ops::Sink* codes) { ops::swiglu_forward(stream, x, y, codes); },
                     [](Stream& stream, const Tensor& dy, const ops::Saved& x, ops::Sink& dx) { ops::swiglu_backward(stream, dy, x, dx); }}
          : Function{"gelu", 1, ops::gelu_forward, ops::gelu_backward};
  for (const PlannedSites& p : s.planned)
    if (p.activations() == DType::bf16) {
      measure_function(s, rows, p, function);
      measure_coded_function(s, rows, p, function);
    }
  measure_embedding(s, rows);
  measure_cross_entropy(s, rows);
}

}  // namespace octet::bench
