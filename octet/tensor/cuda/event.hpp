#pragma once

#include "octet/tensor/cuda/queue.hpp"

struct CUevent_st;

namespace octet::cuda {

/// A CUDA event, declared without CUDA's headers: the GPU records its time when the queue reaches it.
using Event = CUevent_st*;

/// The caller destroys it. `timed`: for seconds_between(). Throws DeviceError when CUDA fails.
Event make_event(bool timed = true);
void end_event(Event);
/// Records the event after all work in the queue.
void record(Queue, Event);
/// Work that is put into the queue from now on begins after the GPU has passed the event.
void hold(Queue, Event);
/// Waits until the GPU has passed `end`, then returns the seconds since `begin`. Throws DeviceError when work before it failed.
double seconds_between(Event begin, Event end);

}  // namespace octet::cuda
