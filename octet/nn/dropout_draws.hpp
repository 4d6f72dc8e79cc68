#pragma once

#include "octet/tensor/sequence_part.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// The numbers from which dropout in a model's training draws (ops::Dropout), in memory of a constant address. So a replayed graph reads
/// those of its micro-batch. Without memory there are none, and nothing is dropped.
class DropoutDraws {
 public:
  /// Memory in the run's region, for runs of this seed.
  void allocate(Stream&, std::uint64_t seed);
  /// The tokens that each sequence of the next micro-batches has here: of `whole` ones those of a member.
  void set_sequence(std::int64_t whole, int member, int members);
  /// Before each micro-batch, or its forward and backward: its number among those of the step, of all ranks. `updates`: i64 [1], those
  /// before this step, in the device's memory; empty: 0.
  void begin_micro_batch(Stream&, const Tensor& updates, std::int64_t number);

  const Tensor& numbers() const { return numbers_; }
  std::int64_t sequence() const { return sequence_; }
  const SequencePart& part() const { return part_; }

 private:
  Tensor numbers_;
  std::int64_t sequence_ = 0;
  SequencePart part_;
};

}  // namespace octet::nn
