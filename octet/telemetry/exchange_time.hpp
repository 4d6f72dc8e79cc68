#pragma once

#include "octet/telemetry/trace_file.hpp"

namespace octet::telemetry {

/// Time in which ranks exchange tensors.
struct ExchangeTime {
  double seconds = 0;
  double exposed = 0;  // of these, while this rank's GPU does nothing else
};
/// Within a span, from the activities of a GPU. Exchanges are kernels of NCCL, which include the wait for other ranks, and copies
/// between devices. These wait without an activity, so a gap beside such a copy belongs to it.
ExchangeTime exchange_time(const StepTrace&, const TracedSpan& within);

}  // namespace octet::telemetry
