#pragma once

#include <memory>
#include <vector>

#include "octet/comm/communicator.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::parallel {

/// Sums over a tensor group of the gradients of values that several of its ranks have: norms' weights, routers and experts, of which each
/// rank has seen its rows, keys and values of heads that several ranks share, latents, and one matrix of each adapter. Gradients of e4m3
/// are added by EightBitSum. One rank has no copies. A parameter that both ends of a pipeline have is left out: its copy is another
/// stage's.
class CopiedGradients {
 public:
  /// All ranks make it at the same time. The group outlives this. Throws ContractError where sums_copies() is false.
  /// `of_both_ends`: of a pipeline, or null.
  CopiedGradients(comm::Communicator& group, const nn::Parameters&, const Parameter* of_both_ends = nullptr);

  /// Whether gradients that are stored so can be summed where this cut has copies: without a scale per tensor, and in complete blocks of
  /// scales. Where sums are divided (nn::Sharded::gradients), gradients are values of one micro-batch, which have no scales.
  static bool sums_copies(const Cut&, Storage gradients);

  /// g = sum over the ranks that have a copy, of all such values of a bucket.
  void sum(Stream&, const nn::Bucket&) const;
  /// Of the ranks with the same heads.
  comm::Traffic traffic(comm::Collective c) const { return of_heads_ ? of_heads_->traffic(c) : comm::Traffic{}; }

 private:
  struct Copies {
    const nn::Bucket* bucket;
    Stored gradient;
    comm::Communicator* owners;
    void sum(Stream&) const;
  };
  void split_by_heads(comm::Communicator& group, const nn::Parameters&);
  bool has_copies(const Parameter& p) const { return p.cut.copies > 1 && &p != of_both_ends_; }
  void add(comm::Communicator& group, const nn::Bucket&);

  const Parameter* of_both_ends_;
  std::unique_ptr<comm::Communicator> of_heads_;  // of the same key and value heads; or null
  std::vector<Copies> copies_;
};

}  // namespace octet::parallel
