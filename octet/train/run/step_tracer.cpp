#include "octet/train/run/step_tracer.hpp"

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"

namespace octet::train {

StepTracer::StepTracer(Device device, std::int64_t steps) : steps_(steps) {
  if (device == Device::cpu)
    throw ConfigError("--trace records the kernels of a GPU: set device = \"gpu\", or use a profiler such as perf on a CPU");
  trace_.emplace();
}

bool StepTracer::end_step(std::int64_t step) {
  if (++seen_ > left_out) spans_.push_back({format("step {}", step), began_, trace_->now()});
  return std::int64_t(spans_.size()) == steps_;
}

telemetry::StepTrace StepTracer::write(const std::string& folder) {
  telemetry::StepTrace trace{trace_->finish(), spans_};
  write_file(folder + "/" + file_name, telemetry::trace_json(trace));
  return trace;
}

}  // namespace octet::train
