#pragma once

#include <functional>
#include <string_view>

#include "octet/tensor/parameter_slice.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::optim {

/// A slice of a parameter, and the maximum of its gradient.
struct UpdatedSlice {
  ParameterSlice of;
  Tensor gradient_amax;  // f32 [1]: max |gradient|

  const Parameter& parameter() const { return *of.parameter; }
};

/// How weights follow their gradients, of the slices that it was made with. Everything that changes from step to step is in device memory.
class Update {
 public:
  virtual ~Update() = default;
  /// step: f32 [12], an AdamWStep. With its skip flag no bit of weights and states changes.
  virtual void apply(Stream&, const Tensor& step) = 0;
  /// f32 [n, 2], or empty: {descale, max} of each state with a scale per tensor.
  virtual Tensor scalars() const { return {}; }
  /// Whether apply() reads the maximum of all values of slice i, also of those that another owner counts.
  virtual bool reads_maximum(std::size_t i) const = 0;

  /// f(number of the slice, name of the state such as "m", the state, how values below its least code are stored).
  using EachState = std::function<void(std::size_t, std::string_view, const Stored&, Tiny)>;
  virtual void each_state(const EachState& f) const = 0;
};

/// A storage with scales is for matrices and tables: norms and biases are few, and their states stay wide.
inline Storage state_storage(const Parameter& p, Storage wanted) {
  return wanted == Storage::bf16 || p.role != ParameterRole::vector ? wanted : Storage::f32;
}

/// States of slices, in one piece of memory, since a host's memory is pinned once.
struct States {
  std::vector<Stored> variables;
  Tensor scalars;  // f32 [n, 2] of those with a scale per tensor, or empty
};
struct WantedState {
  Shape shape;
  Storage storage;
};
/// Zeros. `offload`: on a GPU, in the host's memory, except scales per tensor.
States allocate_states(Stream&, const std::vector<WantedState>&, bool offload);

}  // namespace octet::optim
