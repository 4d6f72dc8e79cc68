#pragma once

#include <string>
#include <vector>

#include "octet/tensor/trace.hpp"

namespace octet::telemetry {

/// Activities of a GPU in some steps of a run.
struct StepTrace {
  std::vector<TracedActivity> activities;  // by their begin
  std::vector<TracedSpan> steps;           // one after the other
};

/// One line of its summary.
struct TraceRow {
  std::string name;  // of a kernel or a copy, without namespaces and arguments; "gaps" for all time without an activity
  std::int64_t count = 0;
  double seconds = 0;
  double share = 0;  // of the time of all steps
};

/// The activities of the steps by name, longest first, and the gaps: the time in which none ran. Activities of several queues may
/// overlap, so shares may sum to more than 1.
std::vector<TraceRow> trace_rows(const StepTrace&);
/// The first `most` rows as a table for a terminal.
std::string trace_table(const std::vector<TraceRow>&, std::size_t most);

/// The trace as JSON in the Trace Event Format, which chrome://tracing and Perfetto open: one line of the picture for the steps, one
/// for each queue of the GPU, and one for gaps of 1 us and more. Times are microseconds since the first step began.
/// Source: "Trace Event Format", Google, complete events.
std::string trace_json(const StepTrace&);

}  // namespace octet::telemetry
