#include "octet/ops/attention/coded_attention.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {

#ifndef OCTET_HAS_CUDNN
namespace {
[[noreturn]] void no_library() {
  throw DeviceError("attention in 8 bits needs cuDNN, and this program was compiled without its headers: set recipe.attention = \"bf16\"");
}
}  // namespace
std::int64_t coded_attention_workspace_bytes(const CodedProblem&, bool) { no_library(); }
void coded_attention_forward(Queue, const ops::CodedAttentionForward&, const Tensor&) { no_library(); }
void coded_attention_backward(Queue, const ops::CodedAttentionBackward&, const Tensor&) { no_library(); }
#endif

namespace {

struct Places {
  float* to[most_maxima];
};
__global__ void raise_maxima_kernel(const float* from, Places places) {
  const int i = int(threadIdx.x);
  if (i >= most_maxima || places.to[i] == nullptr) return;
  const float x = from[i * (maxima_stride / int(sizeof(float)))];
  if (x > *places.to[i]) *places.to[i] = x;
}

}  // namespace

void raise_maxima(Queue queue, const float* from, const std::array<float*, most_maxima>& to) {
  Places places{};
  for (std::size_t i = 0; i < to.size(); ++i) places.to[i] = to[i];
  raise_maxima_kernel<<<1, 32, 0, queue>>>(from, places);
  launched("raise_maxima_kernel");
}

}  // namespace octet::cuda
