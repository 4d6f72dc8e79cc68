#include "octet/ops/attention/attention.hpp"

#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/tensor/cpu/threads.hpp"

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

Tensor scratch(Stream& stream, std::int64_t floats_of_thread) {
  return stream.empty({cpu::threads(), floats_of_thread}, DType::f32, Lifetime::scratch, Category::workspace);
}

}  // namespace

void attention_forward(Stream& stream, const AttentionForward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  stream.count({.ops = 1, .flops = 2 * flops_of_product(a.heads, a.qkv)});
  const Scope scope(stream);
  const Tensor space = scratch(stream, cpu::AttentionBlocks(a.heads).forward_floats());
  if (stream.device() == Device::cpu) OCTET_RUN(attention_forward, a, space.f32());
}

void attention_backward(Stream& stream, const AttentionBackward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  check(a.d_o.shape == a.o.shape && a.d_o.dtype == a.o.dtype && a.dqkv.shape == a.qkv.shape && a.dqkv.dtype == a.qkv.dtype,
        "attention: d_o must be like o {} and dqkv like qkv {}, got {} and {}", a.o.shape, a.qkv.shape, a.d_o.shape, a.dqkv.shape);
  stream.count({.ops = 1, .flops = 5 * flops_of_product(a.heads, a.qkv)});
  const Scope scope(stream);
  const Tensor space = scratch(stream, cpu::AttentionBlocks(a.heads).backward_floats());
  if (stream.device() == Device::cpu) OCTET_RUN(attention_backward, a, space.f32());
}

}  // namespace octet::ops
