#include "octet/tensor/cuda/event.hpp"

#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

Event make_event(bool timed) {
  cudaEvent_t event;
  require(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

void end_event(Event event) { cudaEventDestroy(event); }

void record(Queue queue, Event event) { require(cudaEventRecord(event, queue), "cudaEventRecord"); }

void hold(Queue queue, Event event) { require(cudaStreamWaitEvent(queue, event, 0), "cudaStreamWaitEvent"); }

double seconds_between(Event begin, Event end) {
  require(cudaEventSynchronize(end), "work that is timed");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return 1e-3 * double(milliseconds);
}

}  // namespace octet::cuda
