#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::bench {

/// Values that tensors under measurement are filled with: of a normal distribution of deviation 1, as zeros and few distinct values let
/// a processor run faster than real data does. Copies of one pool, whose length fits no row, so that filling takes no time.
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
