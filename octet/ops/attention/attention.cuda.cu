#include "octet/ops/attention/cudnn_attention.hpp"

namespace octet::cuda {

#ifndef OCTET_HAS_CUDNN
CudnnAttention* cudnn_attention(const AttentionProblem&) { return nullptr; }
std::string cudnn_version(std::string* why_not) {
  if (why_not != nullptr) *why_not = "this program was compiled without cuDNN's headers";
  return "";
}
#endif

std::int64_t attention_workspace_bytes(const AttentionProblem& p, AttentionPass pass) {
  if (auto* const cudnn = cudnn_attention(p)) return cudnn->workspace_bytes(pass);
  return pass != AttentionPass::forward ? p.heads.heads * p.tokens * std::int64_t(sizeof(float)) : 0;
}

void attention_forward(Queue queue, const ops::AttentionForward& a, const Tensor& workspace) {
  if (a.qkv.shape[0] == 0) return;
  if (auto* const cudnn = cudnn_attention(problem_of(a))) return cudnn->forward(queue, a, workspace.data);
  plain_attention_forward(queue, a);
}

void attention_backward(Queue queue, const ops::AttentionBackward& a, const Tensor& workspace) {
  if (a.qkv.shape[0] == 0) return;
  if (auto* const cudnn = cudnn_attention(problem_of(a))) return cudnn->backward(queue, a, workspace.data);
  plain_attention_backward(queue, a, workspace.f32());
}

std::string attention_library() {
  std::string why_not;
  const std::string version = cudnn_version(&why_not);
  return version.empty() ? "own kernels: " + why_not : "cuDNN " + version;
}

}  // namespace octet::cuda
