#pragma once

#include <vector>

#include "octet/nn/bucket.hpp"
#include "octet/nn/weight.hpp"

namespace octet::nn {

/// Held weights (Weight::hold) of one block, of which each of several ranks keeps an equal part: of the bytes of all operands, one weight
/// after the other. All of them are in memory that blocks of the same parity share in turn.
class FrozenBucket {
 public:
  struct Member {
    Weight* weight;
    DType values;  // of which it is held
  };
  /// Gives the weights their memory. Workspace: the values of one weight.
  FrozenBucket(Stream&, int block, bool experts, const Shard&, const std::vector<Member>&);

  int block() const { return block_; }
  /// Stacks of experts, of which ranks of their axis have parts.
  bool experts() const { return experts_; }
  /// u8: the operands of all weights here, and the own part of them.
  const Tensor& all() const { return all_; }
  const Tensor& part() const { return part_; }
  /// Whether the weight is one of these.
  bool has(const Weight&) const;
  /// The weight's operands in all() are new: the own part takes its bytes of them.
  void keep(Stream&, const Weight&);

 private:
  struct Place {
    const Weight* weight;
    std::int64_t begin, end;  // bytes in all()
  };
  int block_;
  bool experts_;
  IndexRange own_;  // bytes of all()
  std::vector<Place> places_;
  Tensor all_, part_;
};

}  // namespace octet::nn
