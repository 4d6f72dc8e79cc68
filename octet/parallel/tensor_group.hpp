#pragma once

#include <memory>

#include "octet/nn/partition.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/ranks_config.hpp"

namespace octet::parallel {

/// The ranks that divide each layer of a model, as the members of its partition. Per gather and per reduce of [T, D] a rank sends
/// (n - 1) / n of T D values: gathers in the type of the tensor or as codes of one byte, reduces in the tensor's type, added in FP32 and
/// rounded once, or by EightBitSum.
class TensorGroup final : public nn::Partition {
 public:
  /// The communicator outlives this.
  TensorGroup(comm::Communicator& ranks, TensorWire wire)
      : Partition(ranks.rank(), ranks.size()), ranks_(ranks), wire_(wire), of_copies_(ranks.size(), ranks.rank() == 0) {}

  void gather(Stream&, const Tensor& own, const Tensor& all) override;
  void reduce(Stream&, const Tensor& partial, const Tensor& own) override;
  void reduce_exactly(Stream&, const Tensor& partial, const Tensor& own) override;
  void max(Stream&, const Tensor& x) override;
  void sum(Stream&, const Tensor& x) override;
  /// Collected in pieces, through little memory of the device.
  std::vector<float> whole_values(Stream&, const Cut&, std::span<const float> own) override;
  void reserve(Stream& stream, std::int64_t part) const override { reserve_gather(stream, ranks_, part); }
  nn::Partition& of_copies() override { return of_copies_; }

 private:
  comm::Communicator& ranks_;
  TensorWire wire_;
  nn::WholePartition of_copies_;
};

/// These ranks as a partition; one rank as the whole one.
std::unique_ptr<nn::Partition> partition_of(comm::Communicator& ranks, TensorWire wire);

}  // namespace octet::parallel
