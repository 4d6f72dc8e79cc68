#include "octet/scaling/from_data.hpp"

namespace octet::scaling {

Formats formats_of(std::string_view recipe, const RecipeOptions& options, std::string_view when_default, bool has_choice) {
  const std::string_view format = options.format == "default" ? when_default : std::string_view(options.format);
  if (format != "hybrid" && format != "e4m3")
    throw ConfigError(octet::format("recipe.format = \"{}\": there are default, hybrid and e4m3", printable(options.format)));
  if (!has_choice && format != when_default)
    throw ConfigError(octet::format("recipe.format = \"{}\": recipe {} has {} only; leave the key out", format, recipe, when_default));
  return {DType::e4m3, format == "hybrid" ? DType::e5m2 : DType::e4m3};
}

ScaleRule rule_of(const RecipeOptions& options) {
  return options.scale == ScaleRounding::f32 ? ScaleRule::quotient : ScaleRule::power_of_two;
}

std::unique_ptr<Quantizer> ScalesFromData::quantizer(const Site& site, Operand operand, DType format, const SlotGroup& slots) {
  const ScaleBlock block = operand == Operand::weight ? block_of_weight(site) : scheme_.values;
  return std::make_unique<FromData>(spec_of(block, format), slots, slot_of(site, operand, format, block), own_matrices(site, block));
}

ops::QuantizeSpec ScalesFromData::spec_of(ScaleBlock block, DType format) const {
  ops::QuantizeSpec spec;
  spec.format = format, spec.rule = scheme_.rule, spec.rows = spec.cols = block;
  if (block.whole_matrices()) spec.cols = block.transposed();
  return spec;
}

LinearPlan plan_unquantized(DType dtype, std::string why) {
  LinearPlan plan;
  for (auto* quantizer : {&plan.x, &plan.w, &plan.dy}) *quantizer = std::make_unique<Unquantized>(dtype);
  plan.precision = to_text(dtype), plan.why = std::move(why);
  return plan;
}

}  // namespace octet::scaling
