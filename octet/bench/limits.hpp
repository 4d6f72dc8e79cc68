#pragma once

#include <map>
#include <tuple>

#include "octet/bench/random_data.hpp"
#include "octet/bench/timing.hpp"

namespace octet::bench {

/// The highest rates of a stream's device, measured on first use.
class Limits {
 public:
  Limits(Stream& stream, const RandomData& random, const Effort& effort) : stream_(stream), random_(random), effort_(effort) {}

  /// Bytes per second, read and written, of a copy of a tensor far beyond the cache: on the CPU memcpy by one thread or by all, whichever
  /// is faster, on a GPU its own copy. The best of some runs.
  double copy_bytes_per_second();
  /// Operations per second of matrix products whose operands have this type, on large matrices. The CPU multiplies 8-bit codes as the type
  /// that they are decoded to.
  double matrix_flops_per_second(DType operands) const;
  /// The rate of the matrix library itself for d[M, N] = a[M, K] b[N, K]^T: on the CPU oneDNN's best over the orders in which operands
  /// may be stored, on a GPU matrix_flops_per_second().
  double matrix_flops_per_second(DType operands, DType result, std::int64_t M, std::int64_t N, std::int64_t K);

 private:
  Stream& stream_;
  const RandomData& random_;
  Effort effort_;
  double copy_ = 0;
  std::map<std::tuple<DType, DType, std::int64_t, std::int64_t, std::int64_t>, double> known_;  // of operands, result, M, N, K
};

/// Several times the size of the device's last-level cache.
double beyond_cache_bytes(Device);

}  // namespace octet::bench
