#pragma once

#include <functional>
#include <string_view>

#include "octet/tensor/cut.hpp"
#include "octet/tensor/storage.hpp"

namespace octet {

/// Consecutive values of a variable: all of them, or the part that is kept here.
struct StoredSlice {
  Stored stored;             // [n], or of the variable's shape
  Shape whole;               // of the variable
  std::int64_t first = 0;    // element of the variable, a multiple of 128
  const Cut* cut = nullptr;  // of the variable, where it is a part of a larger one
  bool is_whole() const { return stored.count() == whole.count(); }
};

/// A tensor as files of an earlier version have it: value i here is value place(i) there.
struct EarlierForm {
  Shape shape;
  std::function<std::int64_t(std::int64_t)> place;
};

/// Visits all state that the next step depends on. Each component has `void visit_state(StateVisitor&)`, which passes its state, always
/// with the same names in the same order. Saving and restoring are visitors and independent of components. State that follows from the
/// configuration or other state (quantized weights, workspaces) is omitted.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  /// Whether this visitor changes the state, so that a component can update derived values.
  virtual bool restoring() const = 0;

  /// In the memory of the stream's device; shape and dtype follow from the configuration. May change at any time of a step.
  virtual void state(std::string_view name, const Tensor&) = 0;
  /// The same of a tensor that neither forward nor backward changes: a checkpoint may copy it beside them.
  virtual void until_update(std::string_view name, const Tensor& t) { state(name, t); }
  /// The same of an option that a file may not have been written with: restoring then leaves the tensor as it is.
  virtual void optional(std::string_view name, const Tensor& t) { state(name, t); }
  /// The same of a tensor that a file may have in its earlier form, if that has another shape.
  virtual void changed(std::string_view name, const Tensor& t, const EarlierForm&) { state(name, t); }
  /// Whether there can be state under "name.": false while restoring from a file that has none, since an earlier version wrote it.
  virtual bool has(std::string_view) const { return true; }
  /// An option that is not in use: restoring ignores the tensors of a file under "name.".
  virtual void unused(std::string_view) {}
  /// State of another rank, under `name` and names that continue it: restoring leaves it to that rank.
  virtual void elsewhere(std::string_view) {}
  /// Codes under `name` and their scales, where there are any, under scales_name(). As until_update(). Restoring converts values that a
  /// file stores otherwise; `tiny` is for those below the least code.
  virtual void state(std::string_view name, const StoredSlice&, Tiny tiny) = 0;
  /// In the host's memory.
  virtual void state(std::string_view name, std::int64_t&) = 0;
  virtual void state(std::string_view name, double&) = 0;
  virtual void state(std::string_view name, std::vector<double>&) = 0;  // of any length

  /// Values that a number of a component can have.
  struct Bounds {
    std::int64_t least = 0, most = std::int64_t(1) << 53;
  };
  /// A number that an altered file could make another: a reader refuses it outside the bounds, before it restores anything. Returns the
  /// number of the file, or x where nothing is read.
  virtual std::int64_t count(std::string_view name, std::int64_t& x, const Bounds&) {
    state(name, x);
    return x;
  }
  std::int64_t count(std::string_view name, std::int64_t& x) { return count(name, x, {}); }

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

/// The name of the scales of the variable `name`, by which a file tells the storage: "head.weight.scales.f16".
std::string scales_name(std::string_view name, Storage);

}  // namespace octet
