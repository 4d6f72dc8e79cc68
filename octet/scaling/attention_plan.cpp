#include "octet/scaling/attention_plan.hpp"

#include <algorithm>

#include "octet/scaling/precision.hpp"

namespace octet::scaling {
namespace {

constexpr Operand of_forward[] = {Operand::q, Operand::k, Operand::v, Operand::p, Operand::o};
constexpr Operand of_backward[] = {Operand::d_o, Operand::dp, Operand::dq, Operand::dk, Operand::dv};

// Whether an operand's values are there before attention runs.
bool given(Operand o) { return o == Operand::q || o == Operand::k || o == Operand::v || o == Operand::d_o; }

std::string names_of(std::span<const Operand> operands) {
  std::vector<std::string_view> names;
  for (const Operand o : operands) names.push_back(name(o));
  return joined(names);
}

}  // namespace

std::string to_text(AttentionPrecision p) {
  constexpr const char* names[] = {"bf16", "fp8_forward", "fp8"};
  return names[std::size_t(p)];
}

bool codes_attention(const PrecisionConfig& c) {
  return c.attention != AttentionPrecision::bf16 ||
         std::ranges::any_of(c.rules, [](const PrecisionRule& r) { return r.attention != "default" && r.attention != "bf16"; });
}

void Precision::plan_for_attention() {
  if (!codes_attention()) return;
  if (activations() != DType::bf16)
    throw ConfigError(
        format("recipe.attention in 8 bits: its operands are encoded from BF16, and activations are {} under recipe.name = "
               "\"{}\"; set recipe.attention to \"bf16\", or choose another recipe.name",
               activations(), config_.recipe));
  const AttentionRecipes names = attention_recipes(config_.recipe);
  attention_given_ = member_named(names.given, "recipe.attention"), attention_made_ = member_named(names.made, "recipe.attention");
}

AttentionPrecision Precision::attention_at(const Site& site, std::string& why) {
  for (Rule& rule : rules_) {
    if (!rule.matches(site)) continue;
    rule.matched = true;
    const bool all = std::ranges::all_of(rule.operands, [](bool of) { return of; });
    if (!rule.attention && !(rule.member < 0 && all)) continue;  // it is about linear layers
    rule.decided = true, why = rule.reason;
    return rule.attention.value_or(AttentionPrecision::bf16);
  }
  why = format("recipe.attention = \"{}\"", to_text(config_.attention));
  return config_.attention;
}

AttentionPlan Precision::plan_attention(const Site& site) {
  AttentionPlan plan{.path = site.path};
  if (!codes_attention()) return plan;
  std::string why;
  plan.precision = attention_at(site, why);
  PlanRow row{.path = site.path, .precision = "bf16", .why = why, .attention = true};
  if (plan.codes()) {
    const Formats own = members_[0].recipe->formats();
    const auto add = [&](std::span<const Operand> operands) {
      for (const Operand o : operands) {
        const Member& m = members_[std::size_t(given(o) ? attention_given_ : attention_made_)];
        const DType format = is_fp8(own.forward) ? own.of(o) : m.recipe->formats().of(o);
        plan.quantizers[std::size_t(o) - std::size_t(Operand::q)] = m.recipe->quantizer(site, o, format, m.slots);
      }
    };
    add(of_forward);
    if (plan.codes_gradients()) add(of_backward);
    const auto text = [&](std::span<const Operand> operands) {
      return format("{} {}", names_of(operands),
                    is_fp8(own.forward) ? own.of(operands[0]) : Formats{DType::e4m3, DType::e5m2}.of(operands[0]));
    };
    const Member &in = members_[std::size_t(attention_given_)], &out = members_[std::size_t(attention_made_)];
    row.precision = text(of_forward) + (plan.codes_gradients() ? ", " + text(of_backward) : std::string("; backward bf16")) + "; " +
                    (attention_given_ == attention_made_ ? in.recipe->scales()
                                                         : format("{}{}: {}; others: {}", "q, k, v", plan.codes_gradients() ? ", do" : "",
                                                                  in.recipe->scales(), out.recipe->scales()));
    row.eight_bits = true;
  }
  rows_.push_back(std::move(row));
  return plan;
}

}  // namespace octet::scaling
