#include "octet/ops/accumulate/accumulate.hpp"

#include "octet/ops/accumulate/accumulate.kernels.hpp"
#include "octet/ops/stored/stored.hpp"

namespace octet::ops {

void accumulate(Stream& stream, const Accumulate& a) {
  const Storage s = a.sum.storage;
  check(s == Storage::e4m3 || s == Storage::e4m3_tensor, "accumulate: wants a sum in e4m3 or e4m3_tensor, got {}", s);
  check(a.x.shape == a.sum.shape() && (a.x.dtype == DType::f32 || a.x.dtype == DType::bf16),
        "accumulate: x must be f32 or bf16 {}, got {} {}", a.sum.shape(), a.x.dtype, a.x.shape);
  check_stored("accumulate", a.sum);
  check(a.draws.shape == Shape{2} && a.draws.dtype == DType::i64, "accumulate: draws must be i64 [2], got {} {}", a.draws.dtype,
        a.draws.shape);
  const int passes = s == Storage::e4m3_tensor ? 2 : 1;
  stream.count({.ops = 1, .bytes = passes * double(a.x.bytes() + a.sum.bytes()) + double(a.sum.bytes())});
  if (a.x.count() == 0) return;
  if (s == Storage::e4m3) return OCTET_LAUNCH(stream, accumulate_blocks, a);
  const Scope scope(stream);
  const Tensor maxima = stream.empty({1 + ceil_div(a.x.count(), accumulate_piece)}, DType::f32, Lifetime::scratch, Category::workspace);
  OCTET_LAUNCH(stream, accumulate_tensor, a, maxima);
}

}  // namespace octet::ops
