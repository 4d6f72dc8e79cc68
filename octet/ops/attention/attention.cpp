#include "octet/ops/attention/attention.hpp"

#include "octet/ops/attention/attention.kernels.hpp"

namespace octet::ops {
namespace {

void check_output(const QkvShape& heads, const Tensor& qkv, const Tensor& o, const Tensor& lse) {
  const std::int64_t tokens = qkv.shape[0];
  check(o.shape == Shape{tokens, heads.heads * heads.head_dim} && o.dtype == qkv.dtype, "attention: o must be {} [{}, {}], got {} {}", qkv.dtype, tokens,
        heads.heads * heads.head_dim, o.dtype, o.shape);
  check(lse.shape == Shape{heads.heads, tokens} && lse.dtype == DType::f32, "attention: lse must be f32 [{}, {}], got {} {}", heads.heads, tokens, lse.dtype,
        lse.shape);
}

// Of one product over the causal half of all scores, 2 per multiply-add.
double flops_of_product(const QkvShape& heads, const Tensor& qkv) {
  return double(qkv.shape[0]) * double(heads.sequence) * double(heads.heads) * double(heads.head_dim);
}

Tensor workspace(Stream& stream, const QkvShape& heads, [[maybe_unused]] std::int64_t tokens, bool backward) {
  const cpu::AttentionBlocks blocks(heads);
  Shape shape{stream.workers(), backward ? blocks.backward_floats() : blocks.forward_floats()};
#ifdef OCTET_HAS_CUDA
  if (stream.target().device == Device::cuda) shape = {cuda::attention_workspace_bytes(heads, tokens, backward) / std::int64_t(sizeof(float))};
#endif
  return stream.empty(shape, DType::f32, Lifetime::scratch, Category::workspace);
}

}  // namespace

void attention_forward(Stream& stream, const AttentionForward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  stream.count({.ops = 1, .flops = 2 * flops_of_product(a.heads, a.qkv)});
  const Scope scope(stream);
  const Tensor space = workspace(stream, a.heads, a.qkv.shape[0], false);
  OCTET_LAUNCH(stream, attention_forward, a, space);
}

void attention_backward(Stream& stream, const AttentionBackward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  check(a.d_o.shape == a.o.shape && a.d_o.dtype == a.o.dtype && a.dqkv.shape == a.qkv.shape && a.dqkv.dtype == a.qkv.dtype,
        "attention: d_o must be like o {} and dqkv like qkv {}, got {} and {}", a.o.shape, a.qkv.shape, a.d_o.shape, a.dqkv.shape);
  stream.count({.ops = 1, .flops = 5 * flops_of_product(a.heads, a.qkv)});
  const Scope scope(stream);
  const Tensor space = workspace(stream, a.heads, a.qkv.shape[0], true);
  OCTET_LAUNCH(stream, attention_backward, a, space);
}

}  // namespace octet::ops
