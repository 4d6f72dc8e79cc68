#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// A quantizer without state: its spec is fixed, scales come from the data.
class FromData final : public Quantizer {
 public:
  FromData(ops::QuantizeSpec spec, SlotTable& slots, Slot slot) : spec_(spec), slots_(slots), slot_(slots.add(std::move(slot))) {}

  ops::QuantizeSpec spec(const Pass& pass) const override {
    ops::QuantizeSpec out = spec_;
    if (pass.records()) slots_.record(slot_, pass, out);
    return out;
  }

 private:
  ops::QuantizeSpec spec_;
  SlotTable& slots_;
  int slot_;
};

/// Not quantized: operands are the values themselves, as f32 or bf16.
class Unquantized final : public Quantizer {
 public:
  explicit Unquantized(DType dtype) { spec_.format = dtype; }
  ops::QuantizeSpec spec(const Pass&) const override { return spec_; }

 private:
  ops::QuantizeSpec spec_;
};

/// Formats of the three operands under an option "default", "hybrid" or "e4m3". Throws ConfigError when the recipe has no such choice.
struct Formats {
  DType forward = DType::e4m3, gradient = DType::e4m3;
};
Formats formats_of(std::string_view recipe, const RecipeOptions&, std::string_view when_default, bool has_choice);

/// "x e4m3, w e4m3, dy e5m2".
std::string formats_text(const Formats&);

/// A plan whose quantizers take their scales from the data: one rule, one block for activations and gradients, one for weights.
LinearPlan plan_from_data(const Site&, SlotTable&, const Formats&, ScaleRule, ScaleBlock values, ScaleBlock weights);

/// A plan that does not quantize.
LinearPlan plan_unquantized(DType, std::string why);

}  // namespace octet::scaling
