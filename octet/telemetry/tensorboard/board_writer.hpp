#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/base/descriptor.hpp"
#include "octet/telemetry/event.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/telemetry/tensorboard/summary_record.hpp"

namespace octet {

/// A run's events as TensorBoard shows them, in a file of its own in the run's folder, `events.out.tfevents.<time>.octet`: losses, what the
/// optimizer did, speed, and what every quantizer saw and chose in the steps whose health was measured. docs/run-folder.md lists the tags.
/// Each process that trains in the folder adds a file; readers take them in the order of their names, which rises even when the clock was
/// set back. `metrics.jsonl` is the record of a run, this is a view of it: what finds the disk full is left out, with one warning.
/// For one thread at a time.
class BoardWriter {
 public:
  /// `first_step` is the first that may be told from here on: what earlier files of the folder tell of it and of later ones is void.
  /// `skipped` steps were left out before it. Throws IoError.
  BoardWriter(const std::string& folder, std::span<const QuantizerFacts>, std::int64_t first_step, std::int64_t skipped);

  void add(const Event&);

 private:
  /// The tags of one quantizer.
  struct Site {
    std::string amax, scale, scale_max, saturated, flushed;  // scale_max is empty where there is one scale
  };

  void take(const StepEvent&);
  void take(const ScalesEvent&);
  void take(const HealthEvent&);
  void take(const EvalEvent&);
  void take(const IncidentEvent&) {}
  void take(const EndEvent&) {}
  void write(std::int64_t step, std::span<const Scalar>);
  void append(const std::string& message);

  std::string path_;
  Descriptor file_;
  std::int64_t end_ = 0;  // of the last whole record
  std::vector<Site> sites_;
  ScalesEvent scales_;  // the last that came
  std::int64_t skipped_;
  bool warned_ = false;
};

}  // namespace octet
