#pragma once

#include <functional>
#include <vector>

#include "octet/tensor/stream.hpp"

namespace octet::bench {

/// Effort of a measurement.
struct Effort {
  int repeats = 9;                // samples, of which median and quartiles are taken
  double sample_seconds = 0.005;  // a sample is as many launches as fit into about this time
  double working_set_bytes = 0;   // buffers of one measurement are rotated over at least this much memory
  bool (*stopped)() = nullptr;    // asked before each sample whether to give up: measure() then throws Stopped
};

/// The end of a measurement that was stopped. Results of earlier ones are complete.
struct Stopped {};

/// Seconds of one launch: the median of the samples, the quartiles about it, and the shortest, which defines limits.
struct Timing {
  double median = 0, low = 0, high = 0, best = 0;
};

Timing timing_of(std::vector<double> samples);

/// Runs the measured work once, on buffers of its own.
using Launch = std::function<void()>;
/// Allocates (in scratch, or in the step's region if it has temporaries) and fills one set of buffers.
using Prepare = std::function<Launch(Stream&)>;

/// Prepares set after set until they fill the working set, runs each of them once to warm up, then times launches that rotate over the
/// sets, so that no launch finds its buffers in a cache. Frees everything it allocated.
Timing measure(Stream&, const Effort&, const Prepare&);
/// Several ways of the same work on the same buffers, which are filled and warmed up once. Times by way, each as measure() has it.
using PrepareWays = std::function<std::vector<Launch>(Stream&)>;
std::vector<Timing> measure_ways(Stream&, const Effort&, const PrepareWays&);

}  // namespace octet::bench
