#pragma once

#include "octet/nn/block_weights.hpp"
#include "octet/nn/master_weights.hpp"
#include "octet/parallel/block_gathers.hpp"
#include "octet/parallel/coded_weights.hpp"

namespace octet::parallel {

/// Master weights of which every rank stores and updates its shard, and the copies of all weights that modules read on every rank: values
/// rounded to nearest, or the 8-bit codes that a layer reads (nn::Bucket::codes). Where every rank has all of them, there is nothing to do.
/// Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 5.
class ShardedWeights final : public nn::BlockWeights, public nn::MasterWeights {
 public:
  /// Parameters whose masters nn::Shard divides among these ranks, weights beside them that do not train, and the partition whose member
  /// has their cuts; all outlive this. side: as GradientSums.
  ShardedWeights(Stream&, Stream* side, const Sharers& ranks, nn::Parameters&, const std::vector<nn::FrozenBucket>&, nn::Partition&);

  /// Masters became new: copies that are values do, too, on every rank, in one collective per bucket. `scalars`: f32 [n, 2] each, or empty,
  /// {descale, max} of sharded variables with a scale per tensor: maxima become those of all ranks, and so equal scales follow everywhere.
  void publish(Stream&, std::span<const Tensor> scalars);
  /// The same of other values than masters, f32 of each of Parameters::slices(), which have the order of list(), until the next publish().
  /// Masters that modules read, as reads_master() says, are left to the caller.
  void publish_instead(Stream&, std::span<const Tensor> values);
  /// Whether the slice's master is also what modules of this rank read of it.
  bool reads_master(const ParameterSlice&) const;
  /// Copies that are codes become new, by the scales that quantizers have now, if a weight changed since: one collective for all maxima,
  /// and one per bucket. With a pass that records, quantizers measure the own part. Before layers are refreshed with this pass.
  void encode(Stream&, const scaling::Pass&);
  /// Where copies are sharded, too: gathers those of a block, and with a side queue those of the next one.
  void open(Stream&, int block, Needed) override;
  bool in_turn() const override { return parameters_.shard().shards(nn::Sharded::weights); }
  /// Before and after each micro-batch: no block is in memory.
  void forget_blocks() { gathers_.forget(); }
  /// Collected in pieces, through little memory of the device.
  void get_values(Stream&, const nn::Bucket&, float* host) override;

 private:
  bool shards_masters() const { return parameters_.shard().shards(nn::Sharded::masters); }
  void copy_own_part(Stream&, const nn::Bucket&);
  void gather_copies(Stream&);
  void gather(Stream&, const nn::Bucket&);
  void gather_block(Stream&, int block, Needed);
  std::vector<float> own_values(Stream&, const nn::Bucket&) const;

  Sharers ranks_;
  nn::Parameters& parameters_;
  const std::vector<nn::FrozenBucket>& frozen_;
  CodedWeights codes_;
  int blocks_ = 0;
  Needed gathered_ = Needed::all;  // of the blocks in memory
  BlockGathers gathers_;
};

}  // namespace octet::parallel
