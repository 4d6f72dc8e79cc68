#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::bench {

/// Values of measured tensors, normally distributed with deviation 1: a processor runs faster on zeros and few distinct values than on real
/// data. Copies of one pool, whose length fits no row, so that filling takes no time.
class RandomData {
 public:
  /// The pools live in the run's region of the stream.
  explicit RandomData(Stream&);

  /// A tensor of f32 or bf16 with such values.
  Tensor values(Stream&, Shape, DType, Region = Lifetime::scratch) const;
  /// i32 [n]: numbers from 0 to below - 1.
  Tensor tokens(Stream&, std::int64_t n, std::int64_t below) const;

 private:
  Tensor f32_, bf16_;
};

/// The same numbers on the host.
std::vector<std::int32_t> random_tokens(std::int64_t n, std::int64_t below, std::uint64_t seed);

}  // namespace octet::bench
