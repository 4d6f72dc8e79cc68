#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// Of passes that take turns at exchanges of this axis.
LayoutConstraint turns_rule(const Axis& axis, std::string text, bool (*keeps)(const Layout&, const Subject&), std::string why,
                            std::string remedy) {
  return {here, axis, std::move(text), [keeps](const Layout& l, const Subject& s) { return !s.comm.turns || keeps(l, s); },
          says(format("comm.turns = true: {}; set it to false, or {}", why, remedy))};
}

// Whether ZeRO divides something of that stage.
bool divides_at(const Layout& l, const Subject& s, std::int64_t stage) { return s.optimizer && l.shards() > 1 && l.zero >= stage; }

void add_turns_at(const Axis& axis, Constraints& out) {
  out.push_back(turns_rule(
      axis, "With `comm.turns`, a model has one stage.", [](const Layout& l, const Subject&) { return l.pipeline == 1; },
      "stages of a pipeline have turns of their own", "ranks.pipeline = 1"));
  out.push_back(turns_rule(
      axis, "With `comm.turns`, embedding and head are not one matrix.", [](const Layout&, const Subject& s) { return !s.shape.tied; },
      "the parts of a tied embedding's gradient would be added in another order", "model.tied = \"no\""));
  out.push_back(turns_rule(
      axis, "With `comm.turns`, ZeRO-3 is not used.", [](const Layout& l, const Subject& s) { return !divides_at(l, s, 3); },
      "stage 3 has two blocks in memory, and two passes use more of them", "ranks.zero = 2"));
  out.push_back(turns_rule(
      axis, "With `comm.turns` and ZeRO-2, gradients have no scales.",
      [](const Layout& l, const Subject& s) { return !divides_at(l, s, 2) || !has_scales(s.storage(l).gradients); },
      "at stage 2, sums in 8 bits are rounded by the number of one micro-batch", "optim.gradients = \"bf16\", or ranks.zero = 1"));
}

}  // namespace

Constraints of_turns() {
  Constraints out;
  for (const Axis* axis : {&tensor, &experts}) add_turns_at(*axis, out);
  return out;
}

}  // namespace octet::train::constraints
