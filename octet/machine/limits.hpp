#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::machine {

/// The highest rates that a device reaches.
struct MachineLimits {
  double fp8_flops_per_second = 0;  // matrix products of 8-bit codes; on a CPU of the decoded type
  double flops_per_second = 0;      // of other matrix products: BF16 on a GPU, on a CPU the type that it multiplies faster
  double bytes_per_second = 0;      // read and written by a copy of tensors beyond the caches
};
/// Measured once per process, in a fraction of a second, on values that are not zero.
const MachineLimits& machine_limits(Device);

/// The least time that the machine needs for this work, if nothing overlaps: GEMMs on 8-bit codes, other GEMMs and attention at their
/// rates, and the bytes of all other ops at a copy's.
double least_seconds(const Work&, const MachineLimits&);

/// Bytes per second, read and written, of copying `bytes` bytes: on a CPU memcpy by one thread or by all, whichever is faster, on a GPU its
/// own copy. The best of `repeats` runs. Needs twice the bytes of the stream's scratch.
double copy_bytes_per_second(Stream&, std::int64_t bytes, int repeats);

}  // namespace octet::machine
