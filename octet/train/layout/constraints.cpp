#include "octet/train/layout/constraints.hpp"

#include <algorithm>

#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train {

using enum LayoutConstraint::Holds;

const LayoutConstraint* first_broken(const Layout& l, const Subject& s, std::initializer_list<LayoutConstraint::Holds> kinds) {
  for (const LayoutConstraint& rule : layout_constraints())
    if (std::ranges::find(kinds, rule.holds) != kinds.end() && rule.axis.used(l) && !rule.keeps(l, s)) return &rule;
  return nullptr;
}

std::string sentence(const LayoutConstraint* broken, const Layout& l, const Subject& s) {
  return broken == nullptr ? "" : format("{} = {}: {}", broken->axis.key, broken->axis.value(l), broken->why(l, s));
}

const std::vector<LayoutConstraint>& layout_constraints() {
  static const constraints::Constraints all = [] {
    constraints::Constraints out;
    for (const auto& of : {constraints::of_steps, constraints::of_tensor, constraints::of_context, constraints::of_experts,
                           constraints::of_turns, constraints::of_pipeline, constraints::of_zero})
      for (const LayoutConstraint& rule : of()) out.push_back(rule);
    return out;
  }();
  return all;
}

bool trains(const Layout& l, const Subject& s) { return first_broken(l, s, {always, here}) == nullptr; }

void require_layout(const Layout& l, const Subject& s) {
  if (const LayoutConstraint* rule = first_broken(l, s, {always, here})) throw ConfigError(sentence(rule, l, s));
}

}  // namespace octet::train
