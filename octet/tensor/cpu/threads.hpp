#pragma once

namespace octet::cpu {

/// Threads that kernels compute with, and the number of the calling one among them (0 outside a parallel region).
int threads();
int this_thread();
/// 1 <= n; the default is one for each processor this process may use, or OMP_NUM_THREADS.
void set_threads(int n);

/// Throws DeviceError if the system refuses that many threads plus a few for loading and saving: OpenMP would end the process. Tried once
/// per number.
void require_threads();

}  // namespace octet::cpu
