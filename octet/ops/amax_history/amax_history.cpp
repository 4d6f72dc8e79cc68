#include "octet/ops/amax_history/amax_history.kernels.hpp"

namespace octet::ops {

void advance_amax_history(Stream& stream, const AmaxHistory& a) {
  check(a.history.shape.rank == 2 && a.history.shape[0] > 0 && a.history.dtype == DType::f32,
        "amax_history: history must be f32 [L, N], L > 0, got {} {}", a.history.dtype, a.history.shape);
  const std::int64_t slots = a.scale.shape[0];
  const Shape table{slots, scale_slot_floats};
  check(a.first >= 0 && a.first + slots <= a.history.shape[1], "amax_history: history {} has no columns {} to {}", a.history.shape, a.first,
        a.first + slots);
  check(a.scale.shape == table && a.descale.shape == table && a.scale.dtype == DType::f32 && a.descale.dtype == DType::f32,
        "amax_history: scale and descale must be f32 {}, got {} {} and {} {}", table, a.scale.dtype, a.scale.shape, a.descale.dtype,
        a.descale.shape);
  check(a.places.shape == Shape{slots} && a.places.dtype == DType::i32, "amax_history: places must be i32 [{}], got {} {}", slots,
        a.places.dtype, a.places.shape);
  check(a.format_max.shape == Shape{slots} && a.format_max.dtype == DType::f32, "amax_history: format_max must be f32 [{}], got {} {}",
        slots, a.format_max.dtype, a.format_max.shape);
  check(!a.skip || (a.skip.shape == Shape{1} && a.skip.dtype == DType::f32), "amax_history: skip must be f32 [1], got {} {}", a.skip.dtype,
        a.skip.shape);
  check(a.margin >= -64 && a.margin <= 64, "amax_history: margin must be in [-64, 64], got {}", a.margin);
  stream.count({.ops = 1, .bytes = 8.0 * double(a.history.shape[0] * slots) + 16.0 * double(slots)});
  OCTET_LAUNCH(stream, advance_amax_history, a);
}

}  // namespace octet::ops
