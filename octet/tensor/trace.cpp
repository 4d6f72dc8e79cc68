#include "octet/tensor/trace.hpp"

#include "octet/base/error.hpp"
#include "octet/tensor/cuda/trace.hpp"

namespace octet {

Trace::Trace() { cuda::begin_trace(); }

Trace::~Trace() {
  if (!recording_) return;
  try {
    cuda::end_trace();
  } catch (const Error&) {  // what ends the trace early is the error to tell
  }
}

std::int64_t Trace::now() const { return cuda::trace_clock(); }

std::vector<TracedActivity> Trace::finish() {
  recording_ = false;
  return cuda::end_trace();
}

}  // namespace octet
