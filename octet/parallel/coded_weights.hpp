#pragma once

#include "octet/comm/communicator.hpp"
#include "octet/nn/linear.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/nn/partition.hpp"

namespace octet::parallel {

/// The own parts of weights that ranks read as 8-bit codes, encoded from the own masters:
///
///   codes[i] = encode(master[i] * s),   s by the layer's quantizer, for its tensor or its block of 128x128
///
/// Scales are those of the whole tensor. A known one is the quantizer's; others follow from the maxima over all ranks, of which one
/// collective joins those of all tensors. So codes and descales equal, bit by bit, those that one rank makes of all masters. Where members
/// of a partition have parts of a matrix, a second collective joins the maxima of its parts, for one scale per tensor.
/// Health of the quantizers counts the own part alone: the sum over ranks counts each value once.
class CodedWeights {
 public:
  /// Binds the descales of the codes, and memory for scales. Buckets, ranks and partition outlive this.
  CodedWeights(Stream&, comm::Communicator& ranks, nn::Parameters& parameters, nn::Partition&);

  /// Encodes all weights if one of them changed since: true then. All ranks call it, with a pass that records where quantizers measure.
  bool encode(Stream&, const scaling::Pass&);

 private:
  struct Weight {
    nn::Linear* layer;
    const nn::Bucket* bucket;
    std::size_t number;  // in the bucket
    Tensor scales;       // f32 in the layout of the descales: maxima, then scales; empty where they are known
  };
  void bind_scales(Stream&);
  void find_scales(Stream&);
  bool is_stale() const;

  comm::Communicator& ranks_;
  nn::Parameters& parameters_;
  nn::Partition& partition_;
  std::vector<Weight> weights_;  // those with one scale per tensor first
  Tensor scales_;                // of all weights
  std::int64_t of_tensors_ = 0;  // the first of them, one per tensor
};

}  // namespace octet::parallel
