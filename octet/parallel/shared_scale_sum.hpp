#pragma once

#include <span>
#include <vector>

#include "octet/comm/self/self.hpp"
#include "octet/ops/common_scale/common_scale.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::parallel {

/// The room that a shared scale leaves for sums.
enum class SumRoom : std::uint8_t {
  adapted_at_zero,  // mu per tensor, which grows while nothing saturates
  adapted_below,    // mu per tensor, which grows while at most a share of 0.001% saturates, as published
  prescaled,        // mu = 1 / ranks: sums never overflow, small values underflow
  postscaled,       // mu = 1: values have the full range, sums overflow
};
constexpr std::string_view name(SumRoom r) {
  constexpr std::string_view names[] = {"adapted_at_zero", "adapted_below", "prescaled", "postscaled"};
  return names[std::size_t(r)];
}

/// A tensor of a sum: the values here, and of the whole parameter, of which other ranks have parts.
struct SummedTensor {
  std::int64_t values = 0, whole = 0;
};

/// The ranks beside those of an exchange that decide the scales and factors of its tensors with them.
struct ScaleSharers {
  comm::Communicator& parts;       // with other parts of the same tensors, and an exchange of their own at the same time: one scale, one mu
  comm::Communicator& other_sums;  // with sums that are added to these after a step: one mu
};

/// The use of one tensor's shared scale in an exchange.
struct ScaleUse {
  double mu = 1;         // of the next exchange
  double overflow = 0;   // share of the sums that have the largest code
  double underflow = 0;  // share of all ranks' values that were sent as 0 although they are not
};

/// Sums over ranks in E4M3 with one shared scale per tensor, as FP8-LM has published it, for comparison with parallel/eight_bit_sum.hpp:
///   s = the least of the ranks' scales, from the largest of their maxima;   code = E4M3(mu s x)
///   the owner of a share adds codes in FP32 in the order of ranks;   sum = E4M3 of that, saturated;   x = sum / (mu s)
/// One collective for the maxima of all tensors, and one more where other ranks have parts of them: maxima and counts are those of whole
/// tensors. mu and the counts stay on the device: a step reads nothing back. Tensors of fewer than 100,000 values, of all ranks' parts, are
/// summed in their own type: one saturated value is more than their threshold. Differences from the publication: codes are added in FP32,
/// and mu is at most 1. Source: Peng et al. 2023, "FP8-LM", section 2.1.
class SharedScaleSum {
 public:
  static constexpr std::int64_t fewest_values = 100'000;

  /// In the order of all_reduce(). Tables live as long as the stream; the sharers outlive this.
  SharedScaleSum(Stream&, int ranks, std::vector<SummedTensor>, SumRoom, const ScaleSharers&);
  /// Of whole tensors with so many values, which no others share.
  SharedScaleSum(Stream&, int ranks, const std::vector<std::int64_t>& values, SumRoom);

  /// x[t][i] = sum over ranks of x[t][i]; the same bits on every rank. x: f32 or bf16. Throws ContractError for other sizes.
  void all_reduce(Stream&, comm::Communicator&, std::span<const Tensor> x);
  /// After a step's exchanges, where there are other sums: counts become those of both, and mu moves. All these ranks call it.
  void join_other_sums(Stream&);

  /// f32 [T].
  const Tensor& mu() const { return mu_; }
  /// i64 [T, 2] of the last all_reduce(), over all ranks: [t, 0] sums whose code is the largest; 0 for small tensors.
  const Tensor& overflow() const { return overflow_; }
  /// The same: [t, 1] values other than 0 that were sent as 0.
  const Tensor& underflow() const { return underflow_; }

  /// Whether tensor t travels in 8 bits.
  bool scales(std::size_t t) const { return tensors_[t].whole >= fewest_values; }
  /// Of each tensor that travels in 8 bits, in the last all_reduce(): the same on every rank. Waits for the stream.
  std::vector<ScaleUse> uses(Stream&) const;

  /// Whether mu moves from step to step, and so belongs to the state of a run. Else it follows from the number of ranks.
  bool adapts() const { return growth_ != ops::MuGrowth::never; }

 private:
  void reduce_tensor(Stream&, comm::Communicator&, std::size_t t, const Tensor& x);
  void advance(Stream&);
  std::int64_t counted(const SummedTensor&) const;

  int ranks_;
  std::vector<SummedTensor> tensors_;
  comm::SelfCommunicator alone_;
  ScaleSharers sharers_;
  ops::MuGrowth growth_;
  Tensor mu_, limits_, amax_, scales_, unit_, overflow_, underflow_;
};

}  // namespace octet::parallel
