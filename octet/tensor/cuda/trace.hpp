#pragma once

#include "octet/tensor/trace.hpp"

namespace octet::cuda {

/// Begins to record every kernel and copy of this process, those of replayed graphs too, with CUPTI, which is loaded here. One
/// recording at a time. Throws DeviceError when CUPTI is not found, is of another version, or another tool holds it.
void begin_trace();
/// Now, by the clock of the records.
std::int64_t trace_clock();
/// Ends the recording, after the work in all queues is done, and returns its activities by their begin.
std::vector<TracedActivity> end_trace();

}  // namespace octet::cuda
