#pragma once

// Only for *.cuda.cu files: kernels whose blocks begin while the kernel ahead of them in the queue still runs, and wait there. So the
// time of a launch and of first loads is hidden behind that kernel. A recorded graph keeps this.
// Source: PTX ISA, "griddepcontrol"; CUDA programming guide, "Programmatic Dependent Launch".

#include <cstdint>

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// Waits until all earlier work of the queue has ended and its results can be read. Each thread of a kernel of launch_early() calls it
/// before it reads or writes memory; ahead of it are only hints, such as prefetch(). In other kernels it does nothing.
__device__ __forceinline__ void wait_for_earlier_work() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/// Blocks of a next kernel of launch_early() may begin once all blocks of this one have called it or ended. A kernel that waits calls it
/// first: then several next ones are launched while earlier work runs. Each of them ends after it has waited, so the end of the last one
/// is that of all.
__device__ __forceinline__ void let_later_work_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/// A hint: `bytes` from an address on will be read. Both must be multiples of 16. They come to the L2 cache, where later writes find them,
/// so the hint is right even for memory that earlier work still writes.
__device__ __forceinline__ void prefetch(const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}

/// The blocks of a launch.
struct Blocks {
  dim3 grid;
  unsigned threads;
  unsigned cluster = 1;       // blocks side by side that are a cluster
  unsigned shared_bytes = 0;  // dynamic shared memory of a block
  bool early = true;          // they may begin while earlier work runs
};

/// Launches a kernel that calls wait_for_earlier_work(). Throws DeviceError, naming it, when the launch is refused.
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), const Blocks& blocks, Queue queue, const Arguments&... arguments) {
  cudaLaunchAttribute attributes[2] = {{.id = cudaLaunchAttributeProgrammaticStreamSerialization},
                                       {.id = cudaLaunchAttributeClusterDimension}};
  attributes[0].val.programmaticStreamSerializationAllowed = blocks.early;
  attributes[1].val.clusterDim = {blocks.cluster, 1, 1};
  const cudaLaunchConfig_t config{.gridDim = blocks.grid,
                                  .blockDim = dim3(blocks.threads),
                                  .dynamicSmemBytes = blocks.shared_bytes,
                                  .stream = queue,
                                  .attrs = attributes,
                                  .numAttrs = blocks.cluster > 1 ? 2u : 1u};
  require(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

/// Rows up to which kernels of all models begin early: those of tokens that are generated, whose kernels are as short as a launch.
inline constexpr std::int64_t early_rows = 8;

}  // namespace octet::cuda
