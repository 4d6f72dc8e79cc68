#pragma once

#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// As make_queue(), of the side queue with that number, from 1 on: its waiting kernels start before those of queues with larger numbers, as
/// far as the GPU tells so many apart, and before those of the main one.
Queue make_side_queue(int number);

}  // namespace octet::cuda
