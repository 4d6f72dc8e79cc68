#pragma once

// Only for *.cuda.cu files: parameters of one launch, and the update of those whose variables may have any storage.

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::cuda {

/// Part of the parameters of one launch; blocks are numbered consecutively.
template <class Parameter, int most>
struct ParameterBatch {
  Parameter parameter[most];
  unsigned first_block[most + 1];
  int n;

  __device__ __forceinline__ int of_block(unsigned block) const {
    int low = 0, high = n;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_block[middle] <= block) low = middle;
      else high = middle;
    }
    return low;
  }
};

/// All parameters of `a` that are not plain; maxima: see adamw.kernels.hpp.
void update_stored(Queue, const ops::AdamW& a, const Tensor& maxima);

}  // namespace octet::cuda
