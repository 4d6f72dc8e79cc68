#pragma once

// OCTET_HD marks a function whose one body runs on the host and inside a CUDA kernel. It may not allocate, throw, print, or call
// anything that is not itself OCTET_HD. It is always inlined: a file compiled for AVX-512 must not leave behind a copy that the
// linker could hand to the AVX2 code.
#ifdef __CUDACC__
#define OCTET_HD __host__ __device__ __forceinline__
#else
#define OCTET_HD [[gnu::always_inline]] inline
#endif
