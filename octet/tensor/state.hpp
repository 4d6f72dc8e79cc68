#pragma once

#include <string_view>
#include <vector>

#include "octet/tensor/tensor.hpp"

namespace octet {

/// Shown every piece of state that the next step depends on. Each component has `void visit_state(StateVisitor&)`, which shows what it
/// owns, always the same names in the same order; saving and restoring are visitors and know no component. State that follows from
/// the configuration or from other state (quantized weights, workspaces) is not shown.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  /// Whether this visit changes what it is shown, so that a component may bring the rest of itself into line.
  virtual bool restoring() const = 0;

  /// In the memory of the stream's device; shape and dtype follow from the configuration.
  virtual void state(std::string_view name, const Tensor&) = 0;
  /// In the host's memory.
  virtual void state(std::string_view name, std::int64_t&) = 0;
  virtual void state(std::string_view name, double&) = 0;
  virtual void state(std::string_view name, std::vector<double>&) = 0;  // of any length

  /// The state of `part`, under "name.".
  template <class Part>
  void section(std::string_view name, Part& part) {
    enter(name);
    part.visit_state(*this);
    leave();
  }

 protected:
  virtual void enter(std::string_view name) = 0;
  virtual void leave() = 0;
};

}  // namespace octet
