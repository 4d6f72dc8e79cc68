#include <cstdlib>

// Part of every test program: tests, and the programs that they begin, compute on the CPU where there is a GPU, too. Those of the GPU are
// tests/cuda.
[[maybe_unused]] static const int hidden = ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
