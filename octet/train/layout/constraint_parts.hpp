#pragma once

#include "octet/base/check.hpp"
#include "octet/base/text.hpp"
#include "octet/optim/registry.hpp"
#include "octet/train/layout/constraints.hpp"

// The lists of constraints, one file per axis, and the parts that several of them have.

namespace octet::train::constraints {

using enum LayoutConstraint::Holds;
using Axis = LayoutConstraint::Axis;
using parallel::Schedule;
using Constraints = std::vector<LayoutConstraint>;

Constraints of_steps();
Constraints of_tensor();
Constraints of_context();
Constraints of_experts();
Constraints of_turns();
Constraints of_pipeline();
Constraints of_zero();

template <std::int64_t Layout::*size>
inline constexpr Axis axis_of(std::string_view key) {
  return {key, [](const Layout& l) { return format("{}", l.*size); }, [](const Layout& l) { return l.*size > 1; }};
}
inline constexpr Axis tensor = axis_of<&Layout::tensor>("ranks.tensor"), context = axis_of<&Layout::context>("ranks.context");
inline constexpr Axis pipeline = axis_of<&Layout::pipeline>("ranks.pipeline"), chunks = axis_of<&Layout::chunks>("ranks.pipeline_chunks");
inline constexpr Axis schedule{"ranks.pipeline_schedule", [](const Layout& l) { return format("\"{}\"", to_text(l.schedule)); },
                               pipeline.used};
inline constexpr Axis zero{"ranks.zero", [](const Layout& l) { return format("{}", l.zero); }, [](const Layout& l) { return l.zero > 0; }};
inline constexpr Axis data{"ranks.data", [](const Layout& l) { return format("{}", l.data); }, [](const Layout&) { return true; }};
inline constexpr Axis shard{"ranks.shard", [](const Layout& l) { return format("{}", l.shard); },
                            [](const Layout& l) { return l.shard > 0; }};
inline constexpr Axis experts = axis_of<&Layout::experts>("ranks.expert");
inline constexpr Axis micro_batch{"train.batch", [](const Layout& l) { return format("{}", l.micro_batch); },
                                  [](const Layout& l) { return l.eight_bit; }};

/// A sentence without numbers.
inline auto says(std::string text) {
  return [text = std::move(text)](const Layout&, const Subject&) { return text; };
}

/// The nearest number to n that `keeps`, of two equally near ones the smaller; 1 does.
template <class Keeps>
std::int64_t nearest(std::int64_t n, const Keeps& keeps) {
  for (std::int64_t d = 1;; ++d)
    for (const std::int64_t m : {n - d, n + d})
      if (m == 1 || (m > 1 && keeps(m))) return m;
}

inline bool is_wide(const Layout& l, const Subject& s) { return !scaling::has_narrow_range(s.recipe_of(l)); }
inline LayoutConstraint wide_sums(const Axis& axis) {
  return {here, axis, "Activations are not FP16, whose sums between ranks overflow.", is_wide, [](const Layout& l, const Subject& s) {
            return format("recipe.name = \"{}\": sums of FP16 activations between ranks overflow; choose another recipe", s.recipe_of(l));
          }};
}

/// An optimizer that reads whole matrices.
inline bool divides_matrices(const Subject& s) { return !s.optimizer || !optim::optimizer_named(s.optimizer->name).whole_matrices; }
inline LayoutConstraint whole_matrices(const Axis& axis, bool (*keeps)(const Layout&, const Subject&), std::string remedy) {
  return {here, axis, "The optimizer does not read whole matrices (`muon` does).", keeps,
          [remedy = std::move(remedy)](const Layout&, const Subject& s) {
            return format(
                "optim.name = \"{}\" reads all values of a matrix at once, of which a rank would have a part; {}, or optim.name = "
                "\"adamw\"",
                s.optimizer->name, remedy);
          }};
}

}  // namespace octet::train::constraints
