#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// The scales of quantizers that know theirs before the data comes: an f32 scale and descale per matrix of each slot. A slot's are
/// neighbours, as grouped GEMMs read them, and begin at a multiple of 256 bytes, since GPU GEMMs refuse unaligned ones. Starts at 1.
class ScaleTable {
 public:
  static constexpr std::int64_t stride = Arena::alignment / sizeof(float);

  void allocate(Stream&, const SlotGroup&);
  Tensor scale() const { return scale_; }            // f32 [N, 64] for N columns of maxima
  Tensor descale() const { return descale_; }        // the same
  Tensor places() const { return places_; }          // i32 [N]: of the scale of each column
  Tensor format_max() const { return format_max_; }  // f32 [N]
  /// f32 [own.count] of a slot.
  Tensor scale(int slot, const OwnMatrices& own) const { return part(scale_, slot, own); }
  Tensor descale(int slot, const OwnMatrices& own) const { return part(descale_, slot, own); }
  /// Where the scales of a slot begin in the tables.
  std::int64_t place(int slot) const { return first_[std::size_t(slot)] * stride; }
  void visit_state(StateVisitor&);

 private:
  Tensor part(const Tensor& table, int slot, const OwnMatrices& own) const {
    return table.reshaped({table.count()}).rows(place(slot) + own.first, own.count);
  }

  std::vector<std::int64_t> first_;  // column of each slot
  Tensor scale_, descale_, places_, format_max_;
};

/// A quantizer with a known scale per tensor, or per matrix of a stack.
class KnownScale final : public Quantizer {
 public:
  KnownScale(const SlotGroup& slots, const ScaleTable& scales, const Slot& slot, const OwnMatrices& own)
      : slots_(slots), scales_(scales), format_(slot.format), block_(slot.block), own_(own), slot_(slots.add(slot)) {}

  ops::QuantizeSpec spec(const Pass&) const override;

 private:
  SlotGroup slots_;
  const ScaleTable& scales_;
  DType format_;
  ScaleBlock block_;
  OwnMatrices own_;
  int slot_;
};

}  // namespace octet::scaling
