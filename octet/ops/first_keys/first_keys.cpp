#include "octet/ops/first_keys/first_keys.hpp"

#include "octet/ops/first_keys/first_keys.kernels.hpp"

namespace octet::ops {

void first_keys(Stream& stream, const FirstKeys& a) {
  check(a.window >= 1 && a.sequence >= 1, "first_keys: window and sequence must be at least 1, got {} and {}", a.window, a.sequence);
  check(a.keys.shape.rank == 1 && a.keys.dtype == DType::i32 && a.keys.count() % a.sequence == 0,
        "first_keys: keys must be i32 [T] with T a multiple of {}, got {} {}", a.sequence, a.keys.dtype, a.keys.shape);
  check(!a.starts || (a.starts.shape == a.keys.shape && a.starts.dtype == DType::i32), "first_keys: starts must be i32 {}, got {} {}",
        a.keys.shape, a.starts.dtype, a.starts.shape);
  stream.count({.ops = 1, .bytes = double(a.keys.bytes()) + (a.starts ? double(a.starts.bytes()) : 0.0)});
  OCTET_LAUNCH(stream, first_keys, a);
}

}  // namespace octet::ops
