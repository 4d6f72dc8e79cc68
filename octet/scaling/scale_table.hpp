#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// The scales of quantizers that know theirs before the data comes: one f32 scale and descale a slot, each on its own 256 bytes, since
/// GPU GEMMs refuse unaligned ones. Starts at 1.
class ScaleTable {
 public:
  static constexpr std::int64_t stride = Arena::alignment / sizeof(float);

  void allocate(Stream&, const SlotGroup&);
  Tensor scale() const { return scale_; }            // f32 [N, 64], column 0 in use
  Tensor descale() const { return descale_; }        // the same
  Tensor format_max() const { return format_max_; }  // f32 [N]
  Tensor scale(int slot) const { return scale_.rows(slot, 1).reshaped({stride}).rows(0, 1); }
  Tensor descale(int slot) const { return descale_.rows(slot, 1).reshaped({stride}).rows(0, 1); }
  void visit_state(StateVisitor&);

 private:
  Tensor scale_, descale_, format_max_;
};

/// A per-tensor quantizer with a known scale.
class KnownScale final : public Quantizer {
 public:
  KnownScale(DType format, const SlotGroup& slots, const ScaleTable& scales, Slot slot)
      : format_(format), slots_(slots), scales_(scales), slot_(slots.add(std::move(slot))) {}

  ops::QuantizeSpec spec(const Pass&) const override;

 private:
  DType format_;
  SlotGroup slots_;
  const ScaleTable& scales_;
  int slot_;
};

}  // namespace octet::scaling
