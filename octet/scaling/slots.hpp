#pragma once

#include <string>
#include <vector>

#include "octet/ops/quantize/spec.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::scaling {

/// The tensor of a quantizer: an operand of a linear layer, an activation that is saved for backward, or an operand of attention:
/// queries, keys, values, probabilities and the output, and their gradients.
enum class Operand : std::uint8_t { activation, weight, gradient, saved, q, k, v, p, o, d_o, dp, dq, dk, dv };
std::string_view name(Operand);  // "x", "w", "dy", "saved", "q", "k", "v", "p", "o", "do", "dp", "dq", "dk", "dv"
/// Whether it is a gradient of an activation.
inline bool is_gradient(Operand o) { return o == Operand::gradient || o >= Operand::d_o; }

/// One quantizer, as reports name it.
struct Slot {
  std::string path;
  Operand operand;
  DType format;
  ScaleBlock block;  // of the row orientation
  int matrices = 1;  // of a stack, on all ranks, each of which has a maximum; 1 unless the block is a matrix
};

/// Those of a stack's matrices that are here. A tensor is a stack of one.
struct OwnMatrices {
  std::int64_t first = 0, count = 1;
};

class SlotTable;

/// The slots of one recipe in the table of a model: a handle. Indices count within it. A slot has a maximum per matrix, in neighbouring
/// columns.
class SlotGroup {
 public:
  /// Before SlotTable::allocate(); returns the slot's index.
  int add(Slot) const;
  int size() const;
  /// Where it begins in the table.
  int first() const;
  const Slot& operator[](int slot) const;
  /// Maxima of all its slots, where they begin in the table, and where those of a slot begin among them.
  std::int64_t columns() const;
  std::int64_t first_column() const;
  std::int64_t column(int slot) const;
  Tensor amax() const;     // f32 [columns()], of this step
  Tensor history() const;  // f32 [L, N], of the whole table: columns from first_column() on are its own
  /// Has a quantizer raise the maxima of these matrices and add to its health, as far as the pass asks for it.
  void record(int slot, const OwnMatrices&, const Pass&, ops::QuantizeSpec&) const;

 private:
  friend class SlotTable;
  SlotGroup(SlotTable& table, std::size_t group) : table_(&table), group_(group) {}
  SlotTable* table_;
  std::size_t group_;
};

/// The measurements of all quantizers of a model, contiguous: one collective and one kernel serve all. Row 0 of `history` collects
/// this step's maxima.
class SlotTable {
 public:
  /// For one recipe's slots, which are neighbours; those of earlier groups come first. Before allocate().
  SlotGroup group();
  /// Binds memory for `history_length` >= 1 rows of maxima, in the run's region.
  void allocate(Stream&, int history_length);

  const std::vector<Slot>& slots() const { return slots_; }
  int size() const { return int(slots_.size()); }
  /// After allocate(): where the maxima of a slot begin; their number, given size(); and whose maximum a column has.
  std::int64_t column(int slot) const { return columns_.at(std::size_t(slot)); }
  int slot_of(std::int64_t column) const;
  Tensor history() const { return history_; }      // f32 [L, N], N = column(size())
  Tensor amax() const;                             // f32 [N], row 0
  Tensor amax(int slot) const;                     // f32 [Slot::matrices]
  ops::QuantizeHealth* health(int slot) const;     // on the device
  Tensor health_table() const { return health_; }  // u8, a QuantizeHealth for each slot
  /// Clears the health of every slot, not the maxima.
  void clear_health(Stream&);
  /// Forgets the measurements of this step: row 0 of the maxima, and the health.
  void clear_measurements(Stream&);
  /// The maxima. Health is that of one step and is left out.
  void visit_state(StateVisitor&);

 private:
  friend class SlotGroup;
  std::vector<Slot> slots_;
  std::vector<int> sizes_;                   // of the groups
  std::vector<std::int64_t> columns_ = {0};  // where slots begin, and their end: each pass of a quantizer asks
  Tensor history_, health_;
};

}  // namespace octet::scaling
