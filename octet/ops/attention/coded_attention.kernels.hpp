#pragma once

#include <array>

#include "octet/ops/attention/coded_attention.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::cuda {

/// The problem that decides the kernels of attention in 8 bits and their workspace.
struct CodedProblem {
  ops::QkvShape heads;
  std::int64_t tokens = 0;
  DType gradients = DType::e5m2;
  friend bool operator<(const CodedProblem& a, const CodedProblem& b) { return a.key() < b.key(); }

 private:
  std::array<std::int64_t, 6> key() const {
    return {heads.heads, heads.kv_heads, heads.head_dim, heads.sequence, tokens, std::int64_t(gradients)};
  }
};

/// At the start of the workspace: the maxima that cuDNN returns, each on its own 256 bytes.
inline constexpr std::int64_t most_maxima = 4, maxima_stride = 256, maxima_bytes = most_maxima * maxima_stride;

/// Bytes of workspace on this machine's GPU. Throws DeviceError if cuDNN does not compute the problem.
std::int64_t coded_attention_workspace_bytes(const CodedProblem&, bool forward);
/// An upper estimate of it for an absent GPU.
std::int64_t coded_attention_workspace_estimate(const CodedProblem&, bool forward);

/// By cuDNN. Throw DeviceError if it is missing or does not compute the problem.
void coded_attention_forward(Queue, const ops::CodedAttentionForward&, const Tensor& workspace);
void coded_attention_backward(Queue, const ops::CodedAttentionBackward&, const Tensor& workspace);

/// to[i] = max(to[i], from[i]) of f32 [1] each, `from` in the places at the start of the workspace; null places are left out.
void raise_maxima(Queue, const float* from, const std::array<float*, most_maxima>& to);

}  // namespace octet::cuda
