#include "octet/bench/subject.hpp"
#include "octet/ops/layernorm/layernorm.hpp"
#include "octet/ops/rmsnorm/rmsnorm.hpp"

namespace octet::bench {
namespace {

constexpr float eps = 1e-5f;

// x, weights and statistics of one norm; gradients where they are wanted.
struct Buffers {
  Tensor x, w, b, first, second, dy, dx, dw, db;

  Buffers(Subject& s, Stream& stream, bool backward) {
    const std::int64_t T = s.tokens, D = s.shape.width;
    x = s.random.values(stream, {T, D}, DType::bf16), w = s.random.values(stream, {D}, DType::f32),
    b = s.random.values(stream, {D}, DType::f32);
    first = s.random.values(stream, {T}, DType::f32), second = s.random.values(stream, {T}, DType::f32);
    if (!backward) return;
    dy = s.random.values(stream, {T, D}, DType::bf16), dx = s.random.values(stream, {T, D}, DType::bf16);
    dw = stream.zeros({D}, DType::f32), db = stream.zeros({D}, DType::f32);
  }
};

Row norm_row(const Subject& s, const char* name, const std::string& precision, double bytes) {
  return {.group = "norm", .name = name, .shape = to_text(Shape{s.tokens, s.shape.width}), .precision = precision, .amount = bytes};
}

void measure_forward(Subject& s, std::vector<Row>& rows, const PlannedSites& p) {
  const Shape shape{s.tokens, s.shape.width};
  const auto sink_on = [&](Stream& stream) {
    return ops::make_sink(stream, p.qkv().x->spec(recording),
                          {.shape = shape, .cols = true, .cols_region = Lifetime::step, .for_gemm = true});
  };
  Stream shapes(Device::null, s.stream.target());
  const double bytes = 2.0 * double(shape.count()) + sink_bytes(shapes, sink_on(shapes));
  // As in training, except for the first norm: the residual sum computes the statistics.
  add_memory_row(s, rows, norm_row(s, "rmsnorm forward", p.recipe, bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, false);
    return [&stream, b, y = sink_on(stream)]() mutable {
      ops::rmsnorm_forward(stream, {.x = b.x, .w = b.w, .y = y, .inv_rms = b.first, .eps = eps, .known = true});
    };
  });
  add_memory_row(s, rows, norm_row(s, "layernorm forward", p.recipe, bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, false);
    return [&stream, b, y = sink_on(stream)]() mutable {
      ops::layernorm_forward(stream,
                             {.x = b.x, .w = b.w, .b = b.b, .y = y, .mean = b.first, .inv_std = b.second, .eps = eps, .known = true});
    };
  });
}

// The limit for matrices of this size: a small copy compared with the large one.
void measure_copy(Subject& s, std::vector<Row>& rows) {
  const Shape shape{s.tokens, s.shape.width};
  add_memory_row(s, rows, norm_row(s, "copy", "bf16", 4.0 * double(shape.count())), [&](Stream& stream) -> Launch {
    const Tensor x = s.random.values(stream, shape, DType::bf16), y = stream.empty(shape, DType::bf16);
    return [&stream, x, y] { copy(stream, x, y); };
  });
}

// The residual sum that a norm comes next to: two matrices are read, one is written.
void measure_add(Subject& s, std::vector<Row>& rows) {
  const double bytes = 3.0 * 2.0 * double(s.tokens) * double(s.shape.width);
  add_memory_row(s, rows, norm_row(s, "rmsnorm add", "bf16", bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, true);
    return [&stream, b] { ops::rmsnorm_add(stream, {.a = b.x, .b = b.dy, .sum = b.dx, .inv_rms = b.first, .eps = eps}); };
  });
  add_memory_row(s, rows, norm_row(s, "layernorm add", "bf16", bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, true);
    return
        [&stream, b] { ops::layernorm_add(stream, {.a = b.x, .b = b.dy, .sum = b.dx, .mean = b.first, .inv_std = b.second, .eps = eps}); };
  });
}

}  // namespace

void measure_norms(Subject& s, std::vector<Row>& rows) {
  for (const PlannedSites& p : s.planned)
    if (p.activations() == DType::bf16) measure_forward(s, rows, p);
  measure_copy(s, rows);
  measure_add(s, rows);
  // dy, x and the gradient of the residual stream are read, the last is written.
  const double bytes = 4.0 * 2.0 * double(s.tokens) * double(s.shape.width);
  add_memory_row(s, rows, norm_row(s, "rmsnorm backward", "bf16", bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, true);
    return [&stream, b] {
      ops::rmsnorm_backward(stream, {.dy = b.dy, .x = b.x, .w = b.w, .inv_rms = b.first, .dx = b.dx, .dw = b.dw, .accumulate = true});
    };
  });
  add_memory_row(s, rows, norm_row(s, "layernorm backward", "bf16", bytes), [&](Stream& stream) -> Launch {
    const Buffers b(s, stream, true);
    return [&stream, b] {
      ops::layernorm_backward(
          stream,
          {.dy = b.dy, .x = b.x, .w = b.w, .mean = b.first, .inv_std = b.second, .dx = b.dx, .dw = b.dw, .db = b.db, .accumulate = true});
    };
  });
}

}  // namespace octet::bench
