#include "octet/ops/attention/attention.hpp"

#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/documents.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::ops {
namespace {

void check_output(const QkvShape& heads, const Tensor& qkv, const Tensor& o, const Tensor& lse) {
  const std::int64_t tokens = qkv.shape[0];
  check(o.shape == Shape{tokens, heads.out_columns()} && o.dtype == qkv.dtype, "attention: o must be {} [{}, {}], got {} {}", qkv.dtype,
        tokens, heads.out_columns(), o.dtype, o.shape);
  check(lse.shape == Shape{heads.heads, tokens} && lse.dtype == DType::f32, "attention: lse must be f32 [{}, {}], got {} {}", heads.heads,
        tokens, lse.dtype, lse.shape);
}

// Keys and values of whole sequences are a tensor of their own just where queries are at a part of the places.
void check_keys(const QkvShape& heads, const Tensor& qkv, const Tensor& keys, const char* name) {
  const Shape wanted{qkv.shape[0] / heads.sequence * heads.whole(), heads.key_columns()};
  check(bool(keys) == bool(heads.part) && (!keys || (keys.shape == wanted && keys.dtype == qkv.dtype)),
        "attention: {} must be {} {} for a part of each sequence, and empty for whole ones, got {} {}", name, qkv.dtype, wanted, keys.dtype,
        keys.shape);
}

// Of products along so many columns, over the causal half of all scores, 2 per multiply-add. Both segments of a balanced part have as many
// on average.
double flops_of(const QkvShape& heads, const Tensor& qkv, std::int64_t columns) {
  return double(qkv.shape[0]) * double(heads.whole()) * double(heads.heads) * double(columns);
}

using cuda::AttentionPass;

std::int64_t bytes_on_gpu(const cuda::AttentionProblem& p, AttentionPass pass) {
#ifdef OCTET_HAS_CUDA
  if (cuda::available()) return cuda::attention_workspace_bytes(p, pass);
#endif
  return cuda::attention_workspace_estimate(p, pass);
}

template <class Args>
Tensor workspace(Stream& stream, const Args& a, AttentionPass pass) {
  if (stream.target().device == Device::cuda) {
    const cuda::AttentionProblem problem = cuda::problem_of(a);
    return stream.empty({bytes_on_gpu(problem, pass)}, DType::u8, Lifetime::scratch, Category::workspace);
  }
  const cpu::AttentionBlocks blocks(a.heads);
  const std::int64_t floats = pass == AttentionPass::forward ? blocks.forward_floats() : blocks.backward_floats();
  return stream.empty({stream.workers(), floats}, DType::f32, Lifetime::scratch, Category::workspace);
}

}  // namespace

void attention_forward(Stream& stream, const AttentionForward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  check_keys(a.heads, a.qkv, a.keys, "keys");
  check_document_starts("attention", stream, a.document_starts, a.qkv.shape[0], a.heads.sequence, a.heads.part);
  stream.count({.ops = 1, .flops = flops_of(a.heads, a.qkv, a.heads.head_dim + a.heads.value_dim())});
  const Scope scope(stream);
  const Tensor space = workspace(stream, a, AttentionPass::forward);
  OCTET_LAUNCH(stream, attention_forward, a, space);
}

void attention_backward(Stream& stream, const AttentionBackward& a) {
  check_qkv("attention", a.heads, a.qkv);
  check_output(a.heads, a.qkv, a.o, a.lse);
  check(a.d_o.shape == a.o.shape && a.d_o.dtype == a.o.dtype && a.dqkv.shape == a.qkv.shape && a.dqkv.dtype == a.qkv.dtype,
        "attention: d_o must be like o {} and dqkv like qkv {}, got {} and {}", a.o.shape, a.qkv.shape, a.d_o.shape, a.dqkv.shape);
  check_keys(a.heads, a.qkv, a.keys, "keys"), check_keys(a.heads, a.qkv, a.dkeys, "dkeys");
  check_document_starts("attention", stream, a.document_starts, a.qkv.shape[0], a.heads.sequence, a.heads.part);
  stream.count({.ops = 1, .flops = flops_of(a.heads, a.qkv, 3 * a.heads.head_dim + 2 * a.heads.value_dim())});
  const Scope scope(stream);
  AttentionBackward b = a;
  b.deterministic = a.deterministic || stream.target().deterministic;
  const Tensor space = workspace(stream, b, b.deterministic ? AttentionPass::deterministic_backward : AttentionPass::backward);
  OCTET_LAUNCH(stream, attention_backward, b, space);
}

std::string attention_library() {
#ifdef OCTET_HAS_CUDA
  return cuda::attention_library();
#else
  cuda::not_built();
#endif
}

}  // namespace octet::ops

namespace octet::cuda {

std::int64_t attention_workspace_estimate(const AttentionProblem& p, AttentionPass pass) {
  constexpr std::int64_t slack = 1 << 16, tile = 128;
  const std::int64_t heads = p.tokens / p.heads.sequence * p.heads.heads, queries = p.heads.sequence / p.segments(),
                     keys = p.heads.place(p.heads.sequence - 1) + 1;  // of the last segment, which has the most
  const std::int64_t delta = heads * queries * std::int64_t(sizeof(float)), dq = delta * p.heads.head_dim;
  if (p.dtype == DType::f32) return pass == AttentionPass::forward ? 0 : delta * p.segments();
  if (pass == AttentionPass::forward) return slack;
  const std::int64_t scores = heads * round_up(queries, tile) * round_up(keys, tile) * std::int64_t(sizeof(Bf16)),
                     of_keys = heads * keys * (p.heads.head_dim + p.heads.value_dim()) * std::int64_t(sizeof(Bf16));
  return delta + dq + (pass == AttentionPass::deterministic_backward ? scores : of_keys) + slack + first_gradient_bytes(p);
}

std::int64_t first_gradient_bytes(const AttentionProblem& p) {
  constexpr std::int64_t aligned = 256;
  const std::int64_t keys = p.tokens / p.heads.sequence * p.heads.whole() * p.heads.key_columns();
  return p.heads.part ? round_up(keys * std::int64_t(size_of(p.dtype)), aligned) : 0;
}

}  // namespace octet::cuda
