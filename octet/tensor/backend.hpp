#pragma once

#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/stream.hpp"

// Calls of kernels: the only place that selects the device.

namespace octet::cuda {
/// Throws DeviceError: this program was compiled without the CUDA toolkit.
[[noreturn]] void not_built();
}  // namespace octet::cuda

/// Declares a kernel `void f(args)` of every backend, at global scope: OCTET_KERNEL(f, const Args&). It exists as octet::cpu::v3::f and
/// v4::f, and as octet::cuda::f, which takes the queue first.
#define OCTET_KERNEL(kernel, ...)  \
  namespace octet::cpu::v3 {       \
  void kernel(__VA_ARGS__);        \
  }                                \
  namespace octet::cpu::v4 {       \
  void kernel(__VA_ARGS__);        \
  }                                \
  namespace octet::cuda {          \
  void kernel(Queue, __VA_ARGS__); \
  }

#ifdef OCTET_HAS_CUDA
#define OCTET_RUN_CUDA(kernel, ...) ::octet::cuda::kernel(__VA_ARGS__)
#else
#define OCTET_RUN_CUDA(kernel, ...) ::octet::cuda::not_built()
#endif

/// Calls the kernel of the stream's device: OCTET_LAUNCH(stream, f, args). Nothing on the null device.
#define OCTET_LAUNCH(stream, kernel, ...)                                                               \
  ((stream).device() == ::octet::Device::cpu    ? OCTET_RUN(kernel, __VA_ARGS__)                        \
   : (stream).device() == ::octet::Device::cuda ? OCTET_RUN_CUDA(kernel, (stream).queue(), __VA_ARGS__) \
                                                : void())
