#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// Members that have rows of one tensor each, in equal numbers. All members make the same calls in the same order.
class RowExchange {
 public:
  virtual ~RowExchange() = default;
  int member() const { return member_; }
  int members() const { return members_; }
  bool divides() const { return members_ > 1; }

  /// Scratch for all [T, C], of members that have as many rows as `own` each; of one member, `own` itself.
  Tensor all_rows(Stream& stream, const Tensor& own) const { return all_rows(stream, own, Category::temporaries); }
  virtual Tensor all_rows(Stream& stream, const Tensor& own, Category category) const {
    return stream.empty({own.shape[0] * members_, own.shape[1]}, own.dtype, Lifetime::scratch, category);
  }
  /// all [T, C] = the own rows [T/n, C] of every member, in their order. Any dtype.
  virtual void gather(Stream&, const Tensor& own, const Tensor& all) = 0;
  /// own [T/n, C] = the own rows of the sum over members of `partial` [T, C]; f32 or bf16. Added in FP32 and rounded once: of sums that
  /// have one term besides zeros, exact.
  virtual void reduce_exactly(Stream&, const Tensor& partial, const Tensor& own) = 0;
  /// x = the sum over members; f32 [N].
  virtual void sum(Stream&, const Tensor& x) = 0;

 protected:
  RowExchange(int member, int members) : member_(member), members_(members) {}

 private:
  int member_, members_;
};

}  // namespace octet::nn
