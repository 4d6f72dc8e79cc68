#pragma once

#include <span>

#include "octet/data/eval_batches.hpp"
#include "octet/telemetry/event.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Means over so many pairs, from ops::PreferenceSum; without sums there are none.
telemetry::PreferenceFigures figures_of(std::span<const double> sums, std::int64_t pairs);
/// Values of an f64 tensor on the host; of an empty one none.
std::vector<double> doubles_of(Stream&, const Tensor&);

/// Log-probabilities of all pairs of a run by its reference: the model as it was before the first step. They are computed once, so no
/// second model is in memory, and are a part of the run's state: a resumed run has the same ones. The default form is that of a run on
/// text, and does nothing.
class PairReferences {
 public:
  PairReferences() = default;
  /// `pairs`: of all the run's datasets, whose checksum is `datasets`.
  PairReferences(std::int64_t pairs, const data::Checksum& datasets);

  bool used() const { return !values_.empty(); }
  /// Gives the pairs of a batch their references.
  void fill(data::Batch&) const;
  /// Computes those of all pairs in these batches by the engine as it is now. All ranks call it. False when it was stopped. Throws
  /// DataError for one that is not finite.
  bool compute(Engine&, std::span<const data::EvalBatches>, bool (*stopped)() = nullptr);
  /// Takes and gives back the memory of compute() for such a batch, so that a dry run, which computes none, includes it.
  static void reserve(Engine&, const data::Batch& shape);
  /// Restoring throws DataError if they are those of other datasets.
  void visit_state(StateVisitor&);

 private:
  void add(Engine&, const data::Batch&);
  void sum_over_ranks(Engine&);

  std::vector<double> values_;  // [pairs, 2]
  data::Checksum datasets_;
};

}  // namespace octet::train
