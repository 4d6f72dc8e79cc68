#include "octet/ops/attention/cudnn_attention.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {

#ifndef OCTET_HAS_CUDNN
CudnnAttention* cudnn_attention(const AttentionProblem&) { return nullptr; }
std::string cudnn_version(std::string* why_not) {
  if (why_not != nullptr) *why_not = "this program was compiled without cuDNN's headers";
  return "";
}
#endif

namespace {

template <class T>
__global__ void add_key_gradients_kernel(std::int64_t n, std::int64_t columns, std::int64_t whole, const T* first, std::int64_t of_first,
                                         T* dkeys, std::int64_t of_second) {
  const std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::int64_t token = i / columns % whole;
  const float a = token < of_first ? load<1>(first, i).v[0] : 0.0f, b = token < of_second ? load<1>(dkeys, i).v[0] : 0.0f;
  store(dkeys, i, Pack<1>::all(a + b));
}

}  // namespace

void add_key_gradients(Queue queue, std::int64_t whole, const Tensor& first, std::int64_t of_first, const Tensor& dkeys,
                       std::int64_t of_second) {
  constexpr int block = 256;
  const std::int64_t n = dkeys.count();
  dispatch<float, Bf16, Fp16>(dkeys.dtype, "attention", [&]<class T>() {
    add_key_gradients_kernel<T>
        <<<unsigned(ceil_div(n, block)), block, 0, queue>>>(n, dkeys.shape[1], whole, first.as<T>(), of_first, dkeys.as<T>(), of_second);
  });
  launched("add_key_gradients");
}

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
