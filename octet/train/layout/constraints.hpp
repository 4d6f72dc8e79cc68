#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/train/layout/subject.hpp"

namespace octet::train {

/// A rule of which axes, models, recipes and storages go together. An engine throws from the list of these, the planner searches by it, and
/// the guide to layouts prints it.
struct LayoutConstraint {
  enum class Holds : std::uint8_t {
    always,   // for any program
    here,     // this version does not train other layouts
    planned,  // others train, but a plan leaves them out
  };
  /// A key of the configuration, and whether a layout makes use of it.
  struct Axis {
    std::string_view key;
    std::string (*value)(const Layout&);
    bool (*used)(const Layout&);
  };

  Holds holds;
  const Axis& axis;
  std::string text;  // of the guide
  /// Whether a layout that uses the axis keeps the rule. Rules that hold `always`, and those before it of its own kind, are kept.
  std::function<bool(const Layout&, const Subject&)> keeps;
  /// The fault of another layout, and which key to change how.
  std::function<std::string(const Layout&, const Subject&)> why;
};

/// All of them, in the order in which they are asked.
const std::vector<LayoutConstraint>& layout_constraints();

/// The first rule of these kinds that the layout breaks; null for none.
const LayoutConstraint* first_broken(const Layout&, const Subject&, std::initializer_list<LayoutConstraint::Holds>);
/// Its sentence: "ranks.tensor = 4: model.heads = 14 must be a multiple of it; ..."; "" for null.
std::string sentence(const LayoutConstraint*, const Layout&, const Subject&);

/// Whether this version trains the layout, and ConfigError with the rule that it breaks where it does not.
bool trains(const Layout&, const Subject&);
void require_layout(const Layout&, const Subject&);

}  // namespace octet::train
