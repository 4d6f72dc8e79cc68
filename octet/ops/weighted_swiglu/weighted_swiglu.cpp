#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"

namespace octet::ops {
namespace {

void check_rows(const Saved& x, const Tensor& w, const ExpertMap& map, float limit, const Shape& half, DType half_dtype) {
  check_expert_map("weighted_swiglu", map);
  check(x.shape.rank == 2 && x.shape[0] == map.rows() && x.shape[1] % 2 == 0, "weighted_swiglu: x must be [{}, 2 F], got {}", map.rows(),
        x.shape);
  check(half == Shape{x.shape[0], x.shape[1] / 2} && half_dtype == x.dtype, "weighted_swiglu: y must be {} [{}, {}], got {} {}", x.dtype,
        x.shape[0], x.shape[1] / 2, half_dtype, half);
  check(w.shape == map.row.shape && w.dtype == DType::f32, "weighted_swiglu: weights must be f32 {}, got {} {}", map.row.shape, w.dtype,
        w.shape);
  check(limit >= 0, "weighted_swiglu: the limit must be above 0, or 0 for none, got {}", limit);
}

}  // namespace

void weighted_swiglu_forward(Stream& stream, const Saved& x, const Tensor& w, const ExpertMap& map, float limit, Sink& y, Sink* codes) {
  check_rows(x, w, map, limit, y.shape, y.dtype);
  // A pass over all of x, with its maximum or its health, must not see what rows without a token hold.
  const bool measured = codes != nullptr && (codes->spec.health != nullptr || codes->spec.amax);
  if (measured && x.values) OCTET_LAUNCH(stream, clear_rows_without_token, x.values, map);
  const Saved in = saving(stream, x, codes);
  check_saved(in, 2, "weighted_swiglu");
  stream.count({.ops = 1, .bytes = double(in.bytes()) + double(y.shape.count()) * double(size_of(y.dtype))});
  OCTET_LAUNCH(stream, weighted_swiglu_forward, in, w, map, limit, y);
}

void weighted_swiglu_backward(Stream& stream, const WeightedSwigluBackward& a, Sink& dx) {
  check_rows(a.x, a.w, a.map, a.limit, a.dy.shape, a.dy.dtype);
  check(a.dw.shape == a.w.shape && a.dw.dtype == DType::f32, "weighted_swiglu: dw must be f32 {}, got {} {}", a.w.shape, a.dw.dtype,
        a.dw.shape);
  check(dx.shape == a.x.shape && dx.dtype == a.x.dtype, "weighted_swiglu: dx must be like x {} {}, got {} {}", a.x.dtype, a.x.shape,
        dx.dtype, dx.shape);
  check_saved(a.x, 2, "weighted_swiglu");
  stream.count({.ops = 1, .bytes = double(a.x.bytes()) + 3.0 * double(a.dy.bytes())});
  const Scope scope(stream);
  Tensor parts;
  if (stream.target().device == Device::cuda)
    parts = stream.empty({a.dy.shape[0], ceil_div(a.dy.shape[1], std::int64_t(8))}, DType::f32, Lifetime::scratch, Category::workspace);
  OCTET_LAUNCH(stream, weighted_swiglu_backward, a, dx, parts);
}

}  // namespace octet::ops
