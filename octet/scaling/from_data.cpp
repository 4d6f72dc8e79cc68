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

std::string formats_text(const Formats& f) { return format("x {}, w {}, dy {}", f.forward, f.forward, f.gradient); }

LinearPlan plan_from_data(const Site& site, SlotTable& slots, const Formats& formats, ScaleRule rule, ScaleBlock values,
                          ScaleBlock weights) {
  const auto quantizer = [&](Operand operand, DType format, ScaleBlock block) {
    ops::QuantizeSpec spec;
    spec.format = format, spec.rule = rule, spec.rows = spec.cols = block;
    return std::make_unique<FromData>(spec, slots, Slot{site.path, operand, format, block});
  };
  LinearPlan plan;
  plan.x = quantizer(Operand::activation, formats.forward, values);
  plan.w = quantizer(Operand::weight, formats.forward, weights);
  plan.dy = quantizer(Operand::gradient, formats.gradient, values);
  plan.precision = formats_text(formats);
  return plan;
}

LinearPlan plan_unquantized(DType dtype, std::string why) {
  LinearPlan plan;
  plan.x = std::make_unique<Unquantized>(dtype);
  plan.w = std::make_unique<Unquantized>(dtype);
  plan.dy = std::make_unique<Unquantized>(dtype);
  plan.precision = to_text(dtype);
  plan.why = std::move(why);
  return plan;
}

}  // namespace octet::scaling
