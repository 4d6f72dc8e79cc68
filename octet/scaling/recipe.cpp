#include "octet/scaling/recipe.hpp"

#include <algorithm>

namespace octet::scaling {

void Recipe::end_step(Stream& stream, const SlotGroup& slots, const Tensor&) { clear(stream, slots.amax()); }

// One scale per matrix.
ops::QuantizeSpec Recipe::spec_of_frozen(const Site& site, DType format) const {
  ops::QuantizeSpec spec;
  spec.format = format, spec.rows = block_of_matrix(site), spec.cols = spec.rows.transposed();
  return spec;
}

Slot slot_of(const Site& site, Operand operand, DType format, ScaleBlock block) {
  Slot slot{site.path, operand, format, block};
  if (block.whole_matrices() && !block.whole_tensor()) slot.matrices = int(site.stack);
  return slot;
}

void RecipeOptions::fields(config::FieldVisitor& v) {
  v.choice("format", format, "8-bit formats: hybrid is E4M3 forward and E5M2 backward; default is the recipe's own",
           {"default", "hybrid", "e4m3"});
  v.field("history", history, "steps of maxima that a scale looks back on, where the recipe keeps a history",
          {.at_least = 1, .at_most = 65536});
  v.choice("algorithm", algorithm, "which of those maxima counts", {"max", "most_recent"});
  v.field("margin", margin, "powers of two of headroom above them", {.at_least = -8, .at_most = 8});
  v.field("calibration", calibration,
          "passes over the first micro-batches before the first step, where scales come from past maxima; 0: they begin at 1",
          {.at_least = 0, .at_most = 64});
  v.choice("scale", scale,
           "scales of rows and of blocks of 128: rounded down to powers of two, or FP32 quotients as servers compute them for activations",
           {{"power_of_two", ScaleRounding::power_of_two}, {"f32", ScaleRounding::f32}});
  v.field("unscaled", unscaled, "where one scale serves the whole model: 8-bit codes are plain casts, under a scale of 1");
}

void RecipeOptions::idle_fields(config::FieldVisitor& v, const std::vector<std::string_view>& read, const std::string& names) const {
  for (const auto& [option, why] : {std::pair("format", "nothing has 8 bits"),
                                    {"history", "no history is kept"},
                                    {"algorithm", "no history is kept"},
                                    {"margin", "no scale has a margin"},
                                    {"calibration", "no scale comes from past maxima"},
                                    {"scale", "no scale is of a row or of 128 values"},
                                    {"unscaled", "no scale serves the whole model"}})
    v.idle(option, std::find(read.begin(), read.end(), option) == read.end(), octet::format("{} under {}", why, names));
  v.idle("calibration", unscaled, "no scale moves, as recipe.unscaled is true");
}

}  // namespace octet::scaling
