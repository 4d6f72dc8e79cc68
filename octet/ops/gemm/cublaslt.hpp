#pragma once

// Only where the CUDA toolkit is: cuBLASLt, loaded when the first GEMM runs on a GPU.

#include <cublasLt.h>

#include <functional>
#include <vector>

#include "octet/ops/gemm/gemm_algorithms.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// The functions of cuBLASLt that are used here, and its handle.
struct CublasLt {
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoCheck) check;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) make_description;
  decltype(&cublasLtMatmulDescSetAttribute) set;
  decltype(&cublasLtMatrixLayoutCreate) make_layout;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) end_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) prefer;
  cublasLtHandle_t handle = nullptr;
};
/// Throws DeviceError where the library is not found or does not work with this GPU.
const CublasLt& cublaslt();

/// Throws DeviceError unless the call succeeded.
void require(cublasStatus_t, const char* what);

/// The operands and results of one multiplication: addresses on the GPU. The scales are null where the form has none; factor, when the form
/// says so, is the sums' factor and after it 1 if the form accumulates, otherwise 0.
struct GemmOperands {
  const void *a, *b;
  void* d;
  const void *a_scale = nullptr, *b_scale = nullptr, *bias = nullptr;
  const float* factor = nullptr;
  void* workspace;
  std::size_t workspace_bytes;
};
/// The same product by kernels of Octet's own, whose result goes to `d`. False, and nothing is done, where one does not take the operands.
using OwnGemms = std::vector<std::function<bool(void* d)>>;
/// Multiplies by the algorithm that this process has for the form, found on first use. False, and nothing is done, when neither the library
/// nor `own`, which may be empty, has one.
bool multiply(Queue, const ops::GemmForm&, const GemmOperands&, const OwnGemms& own, bool deterministic);

}  // namespace octet::cuda
