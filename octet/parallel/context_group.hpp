#pragma once

#include <memory>

#include "octet/comm/communicator.hpp"
#include "octet/nn/partition.hpp"

namespace octet::parallel {

/// The ranks that have parts of the same sequences, which exchange keys and values, and sums of routers' choices. In either direction a
/// rank sends (n - 1) / n of the bytes of keys and values for whole sequences.
class ContextGroup final : public nn::RowExchange {
 public:
  /// The communicator outlives this.
  explicit ContextGroup(comm::Communicator& ranks) : RowExchange(ranks.rank(), ranks.size()), ranks_(ranks) {}

  void gather(Stream& stream, const Tensor& own, const Tensor& all) override { ranks_.all_gather(stream, own, all); }
  void reduce_exactly(Stream& stream, const Tensor& partial, const Tensor& own) override {
    ranks_.reduce_scatter(stream, partial, own, comm::Reduction::sum);
  }
  void sum(Stream& stream, const Tensor& x) override { ranks_.all_reduce(stream, x, comm::Reduction::sum); }

 private:
  comm::Communicator& ranks_;
};

/// These ranks as members that exchange rows; one rank as one that has all of them.
inline std::unique_ptr<nn::RowExchange> sequences_of(comm::Communicator& ranks) {
  if (ranks.size() == 1) return std::make_unique<nn::WholePartition>();
  return std::make_unique<ContextGroup>(ranks);
}

}  // namespace octet::parallel
