#pragma once

#include "octet/tensor/cuda/queue.hpp"

struct CUevent_st;

namespace octet::cuda {

/// A mark in a queue that the GPU stamps with the time when it gets there: CUDA's event, named without its headers.
using Event = CUevent_st*;

/// The caller ends it. Throws DeviceError when CUDA gives none.
Event make_event();
void end_event(Event);
/// Puts the mark behind all work that the queue holds.
void record(Queue, Event);
/// Waits until the GPU has passed `end`, then tells the seconds since it passed `begin`. Throws DeviceError when work before it failed.
double seconds_between(Event begin, Event end);

}  // namespace octet::cuda
