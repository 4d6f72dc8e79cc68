#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/nn/block_weights.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::parallel {

/// Master weights of which every rank keeps and updates its part, and the copies of all weights that modules read on every rank.
/// Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 5.
class DividedWeights final : public nn::BlockWeights {
 public:
  /// Parameters whose masters are divided among these ranks; both outlive this.
  DividedWeights(comm::Communicator& ranks, nn::Parameters& parameters) : ranks_(ranks), parameters_(parameters) {}

  /// Masters became new: every rank's copies do, too, in one collective per bucket. `scalars`: f32 [n, 2] each, or empty, {descale, max} of
  /// divided variables with a scale per tensor: maxima become those of all ranks, and so equal scales follow everywhere.
  void publish(Stream&, std::span<const Tensor> scalars);
  /// Where copies are divided, too: gathers those of a block.
  void open(Stream&, int block) override;

 private:
  void copy_own_part(Stream&, const nn::Bucket&);

  void gather(Stream&, const nn::Bucket&);

  comm::Communicator& ranks_;
  nn::Parameters& parameters_;
};

}  // namespace octet::parallel
