#pragma once

#include <optional>

#include "octet/telemetry/trace_file.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::train {

/// Records the GPU's activities during some steps of a run. The first steps of a process are left out: they choose algorithms of GEMMs
/// and record their graphs.
class StepTracer {
 public:
  static constexpr std::int64_t left_out = 3;
  static constexpr const char* file_name = "trace.json";

  /// Make it before the engine. Throws ConfigError unless the device is a GPU, DeviceError as Trace.
  StepTracer(Device, std::int64_t steps);

  void begin_step() { began_ = trace_->now(); }
  /// After the step of that number. True when it was the last to be traced.
  bool end_step(std::int64_t step);
  /// Ends the recording, writes `file_name` into the folder, and returns the trace. Throws IoError.
  telemetry::StepTrace write(const std::string& folder);

 private:
  std::int64_t steps_, seen_ = 0, began_ = 0;
  std::optional<Trace> trace_;
  std::vector<TracedSpan> spans_;
};

}  // namespace octet::train
