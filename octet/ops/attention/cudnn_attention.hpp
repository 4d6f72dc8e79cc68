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

/// Builds the graphs for a problem when it is first asked for, which takes a fraction of a second. Null, from then on, where cuDNN is not
/// compiled in, not found, or does not take the problem forward and backward: since only it knows the order of its lse, one problem is
/// never computed by both it and us.
CudnnAttention* cudnn_attention(const AttentionProblem&);
/// Loads cuDNN; its version, or "" and why it cannot be used.
std::string cudnn_version(std::string* why_not);

}  // namespace octet::cuda
