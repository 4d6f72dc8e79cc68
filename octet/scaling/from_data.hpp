#pragma once

#include <algorithm>

#include "octet/scaling/recipe.hpp"

namespace octet::scaling {

/// A quantizer without state: its spec is fixed, scales come from the data.
class FromData final : public Quantizer {
 public:
  FromData(ops::QuantizeSpec spec, const SlotGroup& slots, Slot slot, const OwnMatrices& own)
      : spec_(spec), slots_(slots), slot_(slots.add(std::move(slot))), own_(own) {}

  ops::QuantizeSpec spec(const Pass& pass) const override {
    ops::QuantizeSpec out = spec_;
    if (pass.records()) slots_.record(slot_, own_, pass, out);
    return out;
  }

 private:
  ops::QuantizeSpec spec_;
  SlotGroup slots_;
  int slot_;
  OwnMatrices own_;
};

/// The same without a slot: nothing is measured.
class Unmeasured final : public Quantizer {
 public:
  explicit Unmeasured(ops::QuantizeSpec spec) : spec_(std::move(spec)) {}
  ops::QuantizeSpec spec(const Pass&) const override { return spec_; }

 private:
  ops::QuantizeSpec spec_;
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
Formats formats_of(std::string_view recipe, const RecipeOptions&, std::string_view when_default, bool has_choice);

/// How maxima become scales where RecipeOptions::scale decides.
ScaleRule rule_of(const RecipeOptions&);

/// A recipe without state: scales come from the data by one rule, with one block for activations and gradients and one for weights.
class ScalesFromData : public Recipe {
 public:
  struct Scheme {
    ScaleRule rule;
    ScaleBlock values, weights;
    const char* text;  // Recipe::scales()
  };
  ScalesFromData(const Formats& formats, const Scheme& scheme) : formats_(formats), scheme_(scheme) {}
  Formats formats() const override { return formats_; }
  std::string scales() const override { return scheme_.text; }
  int rows_of_blocks() const override { return std::max({1, scheme_.weights.rows, scheme_.weights.cols}); }
  std::unique_ptr<Quantizer> quantizer(const Site&, Operand, DType format, const SlotGroup& slots) override;
  ops::QuantizeSpec spec_of_frozen(const Site& site, DType format) const override { return spec_of(block_of_weight(site), format); }
  bool scales_matrices() const override { return scheme_.weights.whole_tensor(); }

 private:
  ScaleBlock block_of_weight(const Site& site) const { return scales_matrices() ? block_of_matrix(site) : scheme_.weights; }
  ops::QuantizeSpec spec_of(ScaleBlock, DType format) const;

  Formats formats_;
  Scheme scheme_;
};

/// A plan that does not quantize.
LinearPlan plan_unquantized(DType, std::string why);

}  // namespace octet::scaling
