#pragma once

#include "octet/ops/attention/attention.kernels.hpp"

namespace octet::cuda {

/// Attention by cuDNN for one problem, its graphs built and their workspaces known.
class CudnnAttention {
 public:
  virtual ~CudnnAttention() = default;
  /// Throws DeviceError when cuDNN cannot compute the gradient deterministically.
  virtual std::int64_t workspace_bytes(AttentionPass) = 0;
  virtual void forward(Queue, const ops::AttentionForward&, void* workspace) = 0;
  virtual void backward(Queue, const ops::AttentionBackward&, void* workspace) = 0;
};

/// Builds the graphs for a problem on first use, in a fraction of a second. Null if cuDNN is not compiled in, not found, or does not
/// support the problem forward and backward. Only cuDNN knows the order of its lse, so both passes of a problem use the same library.
CudnnAttention* cudnn_attention(const AttentionProblem&);
/// dkeys [B W, n] += first, for the first `of_first` and `of_second` tokens of each sequence of W, of which these have values: dkeys has
/// none, and becomes 0, behind its own. f32, bf16 or f16, added in FP32.
void add_key_gradients(Queue, std::int64_t whole, const Tensor& first, std::int64_t of_first, const Tensor& dkeys, std::int64_t of_second);
/// Loads cuDNN; returns its version, or "" and the reason why it does not work.
std::string cudnn_version(std::string* why_not);

}  // namespace octet::cuda
