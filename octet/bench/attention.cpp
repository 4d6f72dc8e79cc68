#include "octet/bench/subject.hpp"
#include "octet/ops/attention/attention.hpp"
#include "octet/ops/attention/coded_attention.hpp"
#include "octet/ops/latent_heads/latent_heads.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::bench {
namespace {

struct Buffers {
  Tensor qkv, o, lse, d_o, dqkv;

  Buffers(Subject& s, Stream& stream)
      : qkv(s.random.values(stream, {s.tokens, s.heads().columns()}, DType::bf16)),
        o(stream.empty({s.tokens, s.heads().out_columns()}, DType::bf16)),
        lse(stream.empty({s.shape.heads, s.tokens}, DType::f32)),
        d_o(s.random.values(stream, o.shape, DType::bf16)),
        dqkv(stream.empty(qkv.shape, DType::bf16)) {}
};

// Codes of the same, under scales that fit normal values.
struct CodeBuffers {
  ops::AttentionSpecs specs;
  Tensor qkv, o, d_o, dqkv;

  CodeBuffers(Subject& s, Stream& stream)
      : qkv(stream.empty({s.tokens, s.heads().columns()}, DType::e4m3)),
        o(stream.empty({s.tokens, s.heads().out_columns()}, DType::e4m3)),
        d_o(stream.empty(o.shape, DType::e5m2)),
        dqkv(stream.empty(qkv.shape, DType::e5m2)) {
    const auto with = [&](DType format, float factor) {
      ops::QuantizeSpec spec;
      spec.format = format, spec.scale = stream.empty({1}, DType::f32), spec.descale = stream.empty({1}, DType::f32);
      spec.amax = stream.zeros({1}, DType::f32);
      const float scale = format_max(format) / factor, descale = 1 / scale;
      upload(stream, &scale, spec.scale), upload(stream, &descale, spec.descale);
      return spec;
    };
    constexpr float largest = 6;  // of many normal values, about
    specs.q = specs.k = specs.v = specs.o = with(DType::e4m3, largest), specs.p = with(DType::e4m3, 1);
    specs.d_o = specs.dp = specs.dq = specs.dk = specs.dv = with(DType::e5m2, 64);
  }
};

// Of products that are so often along the columns of keys and of values.
Row attention_row(Subject& s, const char* name, std::int64_t of_keys, std::int64_t of_values) {
  const ops::QkvShape h = s.heads();
  const std::int64_t columns = of_keys * h.head_dim + of_values * h.value_dim();
  // Over the causal half of all scores.
  const double flops = double(s.tokens) * double(s.sequence) * double(h.heads) * double(columns);
  Row row{.group = "attention", .name = name, .precision = "bf16", .unit = Unit::flops, .amount = flops};
  row.shape = format("{}x{} {}/{} heads of {}", s.tokens / s.sequence, s.sequence, h.heads, h.kv_heads, h.head_dim);
  if (h.value_dim() != h.head_dim) row.shape += format(" and {}", h.value_dim());
  // The CPU computes attention in f32.
  row.limit = s.limits.matrix_flops_per_second(s.stream.target().device == Device::cpu ? DType::f32 : DType::bf16);
  return row;
}

// Instead of rotation alone: the op that makes heads of latents, and its gradient.
void measure_latent_heads(Subject& s, std::vector<Row>& rows) {
  const ops::LatentHeads shape{.heads = s.heads(), .turned = s.shape.latent.turned, .pairs = s.shape.latent.pairs};
  const std::int64_t queries = shape.heads.heads * shape.heads.head_dim;
  const ops::RopeTable table = ops::rope_table(s.stream, s.sequence, shape.turned, s.shape.rope_theta, s.shape.rope_scaling);
  const auto arguments = [&](Stream& stream) -> ops::LatentArguments {
    const Tensor first = s.random.values(stream, {s.tokens, queries + shape.turned}, DType::bf16);
    return {.q = {first},
            .kv = s.random.values(stream, {s.tokens, shape.expanded()}, DType::bf16),
            .k = {first, queries},
            .qkv = s.random.values(stream, {s.tokens, shape.heads.columns()}, DType::bf16),
            .shape = shape,
            .table = table};
  };
  const double columns = double(queries + shape.turned + shape.expanded() + shape.heads.columns());
  for (auto* const op : {ops::latent_heads_forward, ops::latent_heads_backward})
    add_memory_row(s, rows,
                   {.group = "attention",
                    .name = op == ops::latent_heads_forward ? "latent heads forward" : "latent heads backward",
                    .shape = to_text(Shape{s.tokens, shape.heads.columns()}),
                    .precision = "bf16",
                    .amount = 2 * double(s.tokens) * columns},
                   [&, op](Stream& stream) -> Launch {
                     const ops::LatentArguments a = arguments(stream);
                     return [&stream, op, a] { op(stream, a); };
                   });
}

void measure_rope(Subject& s, std::vector<Row>& rows) {
  if (s.shape.latent) return measure_latent_heads(s, rows);
  const ops::QkvShape heads = s.heads();
  const ops::RopeTable table = ops::rope_table(s.stream, s.sequence, s.shape.head_dim, s.shape.rope_theta, s.shape.rope_scaling);
  const Shape shape{s.tokens, heads.columns()};
  const double all = 2.0 * double(shape.count()), turned = all * double(heads.value_column(0)) / double(heads.columns());
  add_memory_row(s, rows,
                 {.group = "attention", .name = "rope forward", .shape = to_text(shape), .precision = "bf16", .amount = 2 * turned},
                 [&](Stream& stream) -> Launch {
                   const Tensor qkv = s.random.values(stream, shape, DType::bf16);
                   return [&stream, heads, table, qkv] { ops::rope_forward(stream, {.qkv = qkv, .heads = heads, .table = table}); };
                 });
  for (const PlannedSites& p : s.planned) {
    if (p.activations() != DType::bf16) continue;
    const bool in_place = !p.qkv().dy->spec(recording).quantizes();
    const auto sink_on = [&](Stream& stream, const Tensor& values) {
      const ops::SinkRequest request{
          .shape = shape, .cols = true, .plain = in_place ? values : Tensor{}, .for_gemm = true, .cols_left = true};
      return ops::make_sink(stream, p.qkv().dy->spec(recording), request);
    };
    Stream shapes(Device::null, s.stream.target());
    const double bytes = in_place ? 2 * turned : all + sink_bytes(shapes, sink_on(shapes, {}));
    add_memory_row(s, rows,
                   {.group = "attention", .name = "rope backward", .shape = to_text(shape), .precision = p.recipe, .amount = bytes},
                   [&](Stream& stream) -> Launch {
                     const Tensor d = s.random.values(stream, shape, DType::bf16);
                     return [&stream, heads, table, d, y = sink_on(stream, d)]() mutable {
                       ops::rope_backward(stream, {.dqkv = d, .heads = heads, .table = table, .y = y});
                     };
                   });
  }
}

}  // namespace

void measure_attention_products(Subject& s, std::vector<Row>& rows) {
  Row forward = attention_row(s, "attention forward", 1, 1), backward = attention_row(s, "attention backward", 3, 2);
  const ops::QkvShape heads = s.heads();
  forward.seconds = measure(s.stream, s.effort, [&](Stream& stream) -> Launch {
    const Buffers b(s, stream);
    return [&stream, b, heads] { ops::attention_forward(stream, {.qkv = b.qkv, .o = b.o, .lse = b.lse, .heads = heads}); };
  });
  backward.seconds = measure(s.stream, s.effort, [&](Stream& stream) -> Launch {
    const Buffers b(s, stream);
    ops::attention_forward(stream, {.qkv = b.qkv, .o = b.o, .lse = b.lse, .heads = heads});
    return [&stream, b, heads] {
      ops::attention_backward(stream, {.d_o = b.d_o, .o = b.o, .qkv = b.qkv, .lse = b.lse, .dqkv = b.dqkv, .heads = heads});
    };
  });
  rows.push_back(forward), rows.push_back(backward);
}

namespace {

// With the encoding of its operands and the decoding of its results, as a block computes it from BF16.
void measure_coded_attention(Subject& s, std::vector<Row>& rows) {
  const ops::QkvShape heads = s.heads();
  const bool on_gpu = s.stream.target().device == Device::cuda;
  if (!ops::coded_attention_obstacle(s.stream.target(), heads, false, ops::CodedPass::backward).empty()) return;
  if (on_gpu && !ops::attention_library().starts_with("cuDNN")) return;
  Row forward = attention_row(s, "attention forward", 1, 1), backward = attention_row(s, "attention backward", 3, 2);
  const auto limit = s.limits.matrix_flops_per_second(on_gpu ? DType::e4m3 : DType::f32);
  forward.precision = backward.precision = "fp8", forward.limit = backward.limit = limit;
  const auto run_forward = [heads](Stream& stream, const Buffers& b, const CodeBuffers& c) {
    ops::encode_columns(stream, b.qkv, ops::qkv_groups(heads, c.specs), c.qkv);
    ops::coded_attention_forward(stream, {.qkv = c.qkv, .o = c.o, .lse = b.lse, .heads = heads, .specs = c.specs});
    ops::decode_columns(stream, c.o, ops::o_groups(heads, c.specs), b.o);
  };
  forward.seconds = measure(s.stream, s.effort, [&](Stream& stream) -> Launch {
    const Buffers b(s, stream);
    const CodeBuffers c(s, stream);
    return [&stream, b, c, run_forward] { run_forward(stream, b, c); };
  });
  backward.seconds = measure(s.stream, s.effort, [&](Stream& stream) -> Launch {
    const Buffers b(s, stream);
    const CodeBuffers c(s, stream);
    run_forward(stream, b, c);
    return [&stream, b, c, heads] {
      ops::encode_columns(stream, b.d_o, ops::d_o_groups(heads, c.specs), c.d_o);
      ops::coded_attention_backward(stream,
                                    {.d_o = c.d_o, .o = c.o, .qkv = c.qkv, .lse = b.lse, .dqkv = c.dqkv, .heads = heads, .specs = c.specs});
      ops::decode_columns(stream, c.dqkv, ops::dqkv_groups(heads, c.specs), b.dqkv);
    };
  });
  rows.push_back(forward), rows.push_back(backward);
}

}  // namespace

void measure_attention(Subject& s, std::vector<Row>& rows) {
  measure_attention_products(s, rows);
  measure_coded_attention(s, rows);
  measure_rope(s, rows);
}

}  // namespace octet::bench
