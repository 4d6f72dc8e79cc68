#include "octet/ops/stored_sum/stored_sum.hpp"

#include "octet/ops/stored_sum/stored_sum.kernels.hpp"

namespace octet::ops {
namespace {

void check_storage(const Stored& s) {
  check(s.storage == Storage::f32 || s.storage == Storage::bf16 || s.storage == Storage::e4m3 || s.storage == Storage::e4m3_tensor,
        "stored_sum: wants f32, bf16, e4m3 or e4m3_tensor, got {}", name(s.storage));
  check_stored("stored_sum", s);
}

}  // namespace

void stored_sum(Stream& stream, const StoredSum& a) {
  check_storage(a.parts), check_storage(a.sum);
  const std::int64_t n = a.sum.count(), parts = n > 0 ? a.parts.count() / n : 1;
  check(parts >= 1 && a.parts.count() == parts * n, "stored_sum: {} parts are no multiple of the sum's {}", a.parts.shape(), a.sum.shape());
  check(parts == 1 || n % storage_block == 0, "stored_sum: several parts must have a multiple of {} values each, got {}", storage_block, n);
  check(a.more.size() <= StoredSum::most_more, "stored_sum: {} parts more, at most {} are added", a.more.size(), StoredSum::most_more);
  double bytes = double(a.parts.bytes() + a.sum.bytes());
  for (const Stored& m : a.more) {
    check_stored("stored_sum", m);
    check(m.storage == a.parts.storage && m.count() == n, "stored_sum: a part of {} {} beside one of {} {}", name(m.storage), m.shape(),
          name(a.parts.storage), a.sum.shape());
    bytes += double(m.bytes());
  }
  check(!a.adds || a.sum.storage == Storage::f32 || a.sum.storage == Storage::bf16, "stored_sum: adds to f32 or bf16, not to {}",
        name(a.sum.storage));
  check(!a.counts || (a.counts.shape == Shape{2} && a.counts.dtype == DType::i64 && is_fp8(a.sum.codes.dtype)),
        "stored_sum: counts must be i64 [2] of an 8-bit sum, got {} {} of {}", a.counts.dtype, a.counts.shape, name(a.sum.storage));
  stream.count({.ops = 1, .bytes = bytes + (a.adds ? double(a.sum.bytes()) : 0)});
  OCTET_LAUNCH(stream, stored_sum, a);
}

}  // namespace octet::ops
