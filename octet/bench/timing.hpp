#pragma once

#include <functional>

#include "octet/tensor/stream.hpp"

namespace octet::bench {

/// How hard a measurement tries.
struct Effort {
  int repeats = 9;                // samples, of which median and quartiles are taken
  double sample_seconds = 0.005;  // one sample is as many launches as take about this long
  double working_set_bytes = 0;   // buffers of one measurement are rotated over at least this much memory
};

/// Seconds of one launch: the median of the samples, the quartiles about it, and the shortest, which is what limits are made of.
struct Timing {
  double median = 0, low = 0, high = 0, best = 0;
};

Timing timing_of(std::vector<double> samples);

/// Runs the measured work once, on buffers of its own.
using Launch = std::function<void()>;
/// Allocates (in scratch, or in the step's region where it has temporaries of its own) and fills one set of buffers.
using Prepare = std::function<Launch(Stream&)>;

/// Prepares set after set until they fill the working set, runs each of them once to warm up, then times launches that go round the sets,
/// so that no launch finds its buffers in a cache. Everything that was allocated is free afterwards.
Timing measure(Stream&, const Effort&, const Prepare&);

}  // namespace octet::bench
