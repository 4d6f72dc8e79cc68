#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/nn/joined_scales.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/nn/weight.hpp"
#include "octet/parallel/axes.hpp"

namespace octet::parallel {

/// The own parts of weights that ranks read as 8-bit codes, encoded from the own masters:
///
///   codes[i] = encode(master[i] * s),   s by the layer's quantizer, for its tensor or its block of 128x128
///
/// Scales are those of the whole tensor. A known one is the quantizer's; others follow from the maxima over all ranks, of which one
/// collective joins those of all tensors, and a second one those of blocks of experts' stacks. So codes and descales equal, bit by bit,
/// those that one rank makes of all masters. Where members of a partition have parts of a matrix, a further collective joins the maxima of
/// its parts, for one scale per tensor. Health of the quantizers counts the own part alone: the sum over ranks counts each value once.
class CodedWeights {
 public:
  /// Binds the descales of the codes, and memory for scales. Buckets, ranks and partition outlive this.
  CodedWeights(Stream&, const Sharers& ranks, nn::Parameters& parameters, nn::Partition&);

  /// Encodes all weights if one of them changed since: true then. All ranks call it, with a pass that records where quantizers measure.
  bool encode(Stream&, const scaling::Pass&);

 private:
  /// The own values of a weight, and where their codes are in the own part of its bucket.
  struct CodedShard {
    nn::Weight* weight;
    StoredSlice values;
    Tensor codes;
    bool experts = false;
    Tensor scales = {};  // f32 in the layout of the descales; empty where the quantizer knows its scale
  };
  static CodedShard shard_of(const nn::Bucket&, std::size_t i);
  void bind_scales(Stream&);
  void find_scales(Stream&);

  Sharers ranks_;
  nn::Partition& partition_;
  std::vector<CodedShard> shards_;        // those with one scale per tensor first, stacks of experts with others last
  std::vector<nn::JoinedScales> joined_;  // of the parts with scales
  Tensor scales_;                         // of all these
  std::int64_t of_tensors_ = 0;           // the first of them, one per tensor
  std::int64_t of_all_ = 0;               // these, and blocks of parameters that all ranks have
};

}  // namespace octet::parallel
