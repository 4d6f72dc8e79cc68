#pragma once

#include <functional>
#include <span>
#include <vector>

#include "octet/nn/index_range.hpp"
#include "octet/nn/row_exchange.hpp"
#include "octet/tensor/cut.hpp"
#include "octet/tensor/side_work.hpp"

namespace octet::nn {

/// How several members divide a model: each has a part of every matrix, and of every row of activations between blocks. Member m of n has
/// rows [m T / n, (m + 1) T / n) of [T, D]. Inside of a branch of a block it has all rows, of its own heads or columns:
///
///   forward     x [T/n, D] -> norm -> gather -> [T, D] -> columns of W1 -> rows of W2 -> partial sums [T, D] -> reduce -> [T/n, D]
///   backward    the same from the right: gather of dy, reduce of dx
///
/// Sources: Shoeybi et al. 2019, "Megatron-LM", section 3; Korthikanti et al. 2022,
/// "Reducing Activation Recomputation in Large Transformer Models", section 4.2.
class Partition : public RowExchange {
 public:
  /// RowExchange::reduce_exactly(), but sums may be rounded on their way.
  virtual void reduce(Stream&, const Tensor& partial, const Tensor& own) = 0;
  /// Memory for the own columns of all [T, C], of equal numbers; of one member, `all` itself.
  virtual Tensor own_columns(Stream&, const Tensor& all) const;
  /// all = the own columns of every member beside each other. Workspace: as much.
  virtual void gather_columns(Stream&, const Tensor& own, const Tensor& all);
  /// f32 [members T, C] in scratch, the rows that fill(own [T, C]) writes on every member. Empty of one member, whose op needs no table.
  virtual Tensor table_of_all(Stream&, const Shape& own, const std::function<void(const Tensor&)>& fill);
  /// x = the maximum over members; f32.
  virtual void max(Stream&, const Tensor& x) = 0;
  /// All values of a whole tensor in the host's memory, from those that each member has of it.
  virtual std::vector<float> whole_values(Stream&, const Cut&, std::span<const float> own) = 0;
  /// Takes and gives back the memory of whole_values() of so many values, so that a dry run, which collects none, includes it.
  virtual void reserve(Stream&, std::int64_t) const {}

  /// The members as ones that exchange nothing in a layer: each has a copy of all its matrices, and computes it for its own rows. Owners of
  /// copies sum their gradients.
  virtual Partition& of_copies() = 0;
  /// Members with copies of this one's values; the first of them counts and saves them.
  int copies() const { return copies_; }
  bool first_copy() const { return first_copy_; }

  /// Where exchanges run beside products that do not need them.
  SideWork& beside() { return *beside_; }
  /// Outlives this, or its use here.
  void set_beside(SideWork& s) { beside_ = &s; }
  void run_in_stream() { beside_ = &in_stream_; }

 protected:
  Partition(int member, int members, int copies = 1, bool first_copy = true)
      : RowExchange(member, members), copies_(copies), first_copy_(first_copy) {}

 private:
  int copies_;
  bool first_copy_;
  SideWork in_stream_;
  SideWork* beside_ = &in_stream_;
};

/// One member, which has everything: nothing is exchanged, and rows that it gathers or reduces are its own. Others may have copies.
class WholePartition final : public Partition {
 public:
  explicit WholePartition(int copies = 1, bool first_copy = true) : Partition(0, 1, copies, first_copy) {}
  Partition& of_copies() override { return *this; }
  Tensor all_rows(Stream&, const Tensor& own, Category) const override { return own; }
  Tensor own_columns(Stream&, const Tensor& all) const override { return all; }
  void gather_columns(Stream&, const Tensor&, const Tensor&) override {}
  Tensor table_of_all(Stream&, const Shape&, const std::function<void(const Tensor&)>&) override { return {}; }
  void gather(Stream& stream, const Tensor& own, const Tensor& all) override { keep(stream, own, all); }
  void reduce(Stream& stream, const Tensor& partial, const Tensor& own) override { keep(stream, partial, own); }
  void reduce_exactly(Stream& stream, const Tensor& partial, const Tensor& own) override { keep(stream, partial, own); }
  void max(Stream&, const Tensor&) override {}
  void sum(Stream&, const Tensor&) override {}
  std::vector<float> whole_values(Stream&, const Cut&, std::span<const float> own) override { return {own.begin(), own.end()}; }

 private:
  static void keep(Stream& stream, const Tensor& from, const Tensor& to) {
    if (from.data != to.data) copy(stream, from, to);
  }
};
Partition& whole_partition();

/// The own one of equal parts of `all`, a multiple of the members. Throws ContractError if it is none.
IndexRange own_range(const Partition&, std::int64_t all);

/// The values of a part from all of them; an empty cut: all.
std::vector<float> part_of(const Cut&, std::span<const float> whole);

/// The cut of a part, of which Partition::copies() have copies.
Cut with_copies(const Partition&, const Cut&);

/// Cuts of the parameters whose whole matrix is [rows, columns].
Cut own_rows(const Partition&, const Shape& whole);
Cut own_columns(const Partition&, const Shape& whole);
/// Of a parameter that every member has.
Cut own_copy(const Partition&, const Shape& whole);

/// Key and value heads of a member: its share, or, where there are fewer heads than members, the one of its query heads, of which several
/// members have copies. Throws ContractError unless one number divides the other.
struct KeyHeads {
  IndexRange heads;
  int copies = 1;
  bool first_copy = true;
};
KeyHeads own_key_heads(const Partition&, std::int64_t kv_heads);

}  // namespace octet::nn
