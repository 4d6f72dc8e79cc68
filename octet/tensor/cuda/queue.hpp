#pragma once

#include <cstddef>

struct CUstream_st;

namespace octet::cuda {

/// An ordered queue of work on the GPU: a CUDA stream, declared without CUDA's headers.
using Queue = CUstream_st*;

/// The caller destroys it. `first`: its kernels start before waiting ones of other queues. Throws DeviceError if no GPU works.
Queue make_queue(bool first = false);
/// Waits for its work first.
void end_queue(Queue);
/// Returns when all work put into the queue is done. Throws DeviceError when some of it failed.
void wait(Queue);

/// Enqueue a copy of `bytes` bytes, or zeros; addresses of the GPU, or of pinned memory of the host. Throw DeviceError when CUDA refuses.
void copy(Queue, const void* from, void* to, std::size_t bytes);
void clear(Queue, void* at, std::size_t bytes);

}  // namespace octet::cuda
