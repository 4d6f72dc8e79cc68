#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/base/descriptor.hpp"
#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/telemetry/tensorboard/summary_record.hpp"

namespace octet::telemetry {

/// A run's events as TensorBoard shows them, in a file of the run's folder, `events.out.tfevents.<time>.octet`: the metrics that have a tag
/// (octet/telemetry/metric.hpp), the statistics of every quantizer in the steps whose health was measured, the plan, alerts and samples as
/// texts. docs/run-folder.md lists the tags. Each process that trains in the folder adds a file; readers take them in the order of their
/// names, which increases even if the clock was set back. `metrics.jsonl` is the record of a run, this is a view of it: on a full disk
/// events are dropped, with one warning. Not thread-safe.
class BoardWriter {
 public:
  /// Events begin at `first_step`: earlier files' events of it and later steps are void. `skipped`: number of skipped steps before it.
  /// `shared_scales`: RanksFacts::shared_scales. Throws IoError.
  BoardWriter(const std::string& folder, std::span<const QuantizerFacts>, std::int64_t first_step, std::int64_t skipped,
              std::span<const std::string> shared_scales = {});

  void add(const Event&);
  /// The plan as a table of Markdown: the precision of every layer, and the storage of weights, gradients and moments.
  void add_plan(std::int64_t step, std::span<const PlanEntry>);

 private:
  /// The tags of one quantizer.
  struct Site {
    std::string amax, scale, scale_max, saturated, flushed, deviation, lossy;  // scale_max is empty if there is one scale
  };

  /// The tags of one shared scale.
  struct Sum {
    std::string mu, overflow, underflow;
  };

  using Scalars = std::vector<Scalar>;

  // Adds numbers of single tensors and texts, which the table of metrics does not have.
  template <class E>
  void take(const E&, Scalars&) {}
  void take(const StepEvent&, Scalars&);
  void take(const ScalesEvent&, Scalars&);
  void take(const HealthEvent&, Scalars&);
  void take(const SharedScalesEvent&, Scalars&);
  void take(const ExpertsEvent&, Scalars&);
  void take(const SampleEvent&, Scalars&);
  void take(const AlertEvent&, Scalars&);
  void take(const RecoveryEvent&, Scalars&);
  void append(const std::string& message);

  std::string path_;
  Descriptor file_;
  std::int64_t end_ = 0;  // of the last complete record
  std::vector<Site> sites_;
  std::vector<Sum> sums_;
  std::vector<std::string> routing_;  // tags of the layers of the last event
  ScalesEvent scales_;                // the last one received
  std::int64_t skipped_;
  bool warned_ = false;
};

}  // namespace octet::telemetry
