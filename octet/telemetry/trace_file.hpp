#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/tensor/trace.hpp"

namespace octet::telemetry {

/// An exchange with other ranks, by the clock of the spans.
struct TracedExchange {
  std::string name;  // "all_reduce (sum) of f32 [12]"
  std::int64_t begin = 0, end = 0;
  std::int64_t sent_bytes = 0;
};

/// The work of one rank in some steps of a run.
struct StepTrace {
  std::vector<TracedActivity> activities{};  // of its GPU, by their begin
  std::vector<TracedSpan> steps{};           // one after the other
  std::vector<TracedSpan> parts{};           // of the steps, as the host saw them end: empty where it does not wait for a GPU
  std::vector<TracedExchange> exchanges{};   // that the host made; a GPU's are activities
  std::vector<TracedExchange> under_way{};   // in two parts, from their begin to their end, while the host computed
  std::vector<TracedSpan> pieces{};          // of passes in turn: "forward of micro-batch 3: attention"
  bool gpu = false;                          // whether activities are recorded
};

/// One line of its summary.
struct TraceRow {
  std::string name;  // of a kernel or a copy, without namespaces and arguments; "gaps" for all time without an activity
  std::int64_t count = 0;
  double seconds = 0;
  double share = 0;  // of the time of all steps
};

/// The activities of the steps by name, longest first, and the gaps: the time in which none ran. Without a GPU: parts and exchanges, which
/// are within parts. Activities of several queues may overlap, so shares may sum to more than 1.
std::vector<TraceRow> trace_rows(const StepTrace&);
/// The first `most` rows as a table for a terminal.
std::string trace_table(const std::vector<TraceRow>&, std::size_t most);

/// A rank of a picture.
struct TracePlace {
  std::int64_t rank = 0;
  std::string name{};  // "rank 0 on host"; empty: the program's
};
/// The trace as events of the Trace Event Format: JSON values with commas between them. The rank is one process of the picture. Its lines
/// are the steps, their parts, its exchanges, pieces of passes in turn and exchanges beside them, each queue of its GPU, and gaps of 1 us
/// and more. Times are microseconds since the rank's first step began. Source: "Trace Event Format", Google, complete events.
std::string trace_events(const StepTrace&, const TracePlace&);
/// The file, which chrome://tracing and Perfetto open, of the events of all ranks.
std::string trace_text(std::span<const std::string> events);

}  // namespace octet::telemetry
