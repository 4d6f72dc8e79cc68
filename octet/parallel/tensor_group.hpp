#pragma once

#include <optional>

#include "octet/nn/parameters.hpp"
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
  TensorGroup(comm::Communicator& ranks, TensorWire wire) : Partition(ranks.rank(), ranks.size()), ranks_(ranks), wire_(wire) {}

  void gather(Stream&, const Tensor& own, const Tensor& all) override;
  void reduce(Stream&, const Tensor& partial, const Tensor& own) override;
  void reduce_exactly(Stream&, const Tensor& partial, const Tensor& own) override;
  void max(Stream&, const Tensor& x) override;
  /// Collected in pieces, through little memory of the device.
  std::vector<float> whole_values(Stream&, const Cut&, std::span<const float> own) override;
  /// Takes and gives back the memory of whole_values() of a part, so that a dry run, which collects none, includes it.
  void reserve(Stream& stream, std::int64_t part) const { reserve_gather(stream, ranks_, part); }

  comm::Communicator& ranks() const { return ranks_; }

 private:
  comm::Communicator& ranks_;
  TensorWire wire_;
};

/// Sums over a tensor group of the gradients of values that several of its ranks have: norms' weights, of which each rank has seen its
/// rows, and keys and values of heads that several ranks share.
class CopiedGradients {
 public:
  /// All ranks make it at the same time. The group and the parameters outlive this. Throws ContractError for shared heads whose gradients
  /// have scales; where sums are divided (nn::Share::gradients), these are values of one micro-batch, which have none.
  CopiedGradients(TensorGroup&, const nn::Parameters&);

  /// g = sum over the ranks that have a copy, of all such values of a bucket.
  void sum(Stream&, const nn::Bucket&);
  /// Of the ranks with the same heads.
  comm::Traffic traffic(comm::Collective c) const { return of_heads_ ? of_heads_->traffic(c) : comm::Traffic{}; }

 private:
  comm::Communicator& sharers_of(const Parameter&) const;

  TensorGroup& group_;
  std::unique_ptr<comm::Communicator> of_heads_;  // of the same key and value heads; or null
};

}  // namespace octet::parallel
