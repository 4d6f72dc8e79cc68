#include "octet/ops/attention/coded_attention.hpp"

#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/coded_attention.kernels.hpp"
#include "octet/ops/attention/documents.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::ops {
namespace {

constexpr std::int64_t gpu_head_dim = 128;

void check_codes(const char* name, const Tensor& x, const Shape& shape) {
  check(x.shape == shape && is_fp8(x.dtype), "coded attention: {} must be e4m3 or e5m2 {}, got {} {}", name, shape, x.dtype, x.shape);
}
void check_spec(const char* name, const QuantizeSpec& s, DType format) {
  check(s.format == format && s.scale_known() && s.descale && s.rows.whole_tensor(),
        "coded attention: {} must have a known scale per tensor and the format {}", name, format);
}

template <class Args>
void check_operands(Stream& stream, const Args& a, CodedPass pass) {
  const std::int64_t tokens = a.qkv.shape[0];
  check(a.qkv.shape.rank == 2 && a.qkv.dtype == DType::e4m3, "coded attention: qkv must be e4m3 [T, {}], got {} {}", a.heads.columns(),
        a.qkv.dtype, a.qkv.shape);
  check_qkv("coded attention", a.heads, {.data = a.qkv.data, .shape = a.qkv.shape, .dtype = DType::bf16});
  check_codes("o", a.o, {tokens, a.heads.out_columns()});
  check(a.lse.shape == Shape{a.heads.heads, tokens} && a.lse.dtype == DType::f32, "coded attention: lse must be f32 [{}, {}], got {} {}",
        a.heads.heads, tokens, a.lse.dtype, a.lse.shape);
  check_document_starts("coded attention", stream, a.document_starts, tokens, a.heads.sequence, a.heads.part);
  for (const auto& [name, spec] : {std::pair("q", &a.specs.q), {"k", &a.specs.k}, {"v", &a.specs.v}, {"p", &a.specs.p}, {"o", &a.specs.o}})
    check_spec(name, *spec, DType::e4m3);
  const std::string obstacle = coded_attention_obstacle(stream.target(), a.heads, bool(a.document_starts), pass);
  check(obstacle.empty(), "coded attention: {}", obstacle);
}

// Of products along so many columns, over the causal half of all scores, 2 per multiply-add.
void count(Stream& stream, std::int64_t columns, const QkvShape& heads, std::int64_t tokens) {
  const double flops = double(tokens) * double(heads.sequence) * double(heads.heads) * double(columns);
  stream.count({.ops = 1, .flops = flops, .gemm_flops = flops, .fp8_flops = flops});
}

Tensor decoded(Stream& stream, const Tensor& codes, const ColumnGroups& groups) {
  const Tensor x = stream.empty(codes.shape, DType::f32);
  decode_columns(stream, codes, groups, x);
  return x;
}

Tensor workspace(Stream& stream, const QkvShape& heads, bool forward) {
  const cpu::AttentionBlocks blocks(heads);
  return stream.empty({stream.workers(), forward ? blocks.forward_floats() : blocks.backward_floats()}, DType::f32, Lifetime::scratch,
                      Category::workspace);
}

// The CPU's: products of decoded codes in f32.
void emulate(Stream& stream, const CodedAttentionForward& a) {
  const Tensor qkv = decoded(stream, a.qkv, qkv_groups(a.heads, a.specs)), o = stream.empty(a.o.shape, DType::f32);
  {
    const Scope inner(stream);
    const Tensor space = workspace(stream, a.heads, true);
    const AttentionForward plain{.qkv = qkv, .o = o, .lse = a.lse, .heads = a.heads, .document_starts = a.document_starts};
    if (stream.device() == Device::cpu) OCTET_RUN(emulated_attention_forward, plain, a.specs.p, space);
  }
  encode_columns(stream, o, o_groups(a.heads, a.specs), a.o);
}

void emulate(Stream& stream, const CodedAttentionBackward& a) {
  const Tensor qkv = decoded(stream, a.qkv, qkv_groups(a.heads, a.specs)), o = decoded(stream, a.o, o_groups(a.heads, a.specs)),
               d_o = decoded(stream, a.d_o, d_o_groups(a.heads, a.specs)), dqkv = stream.empty(a.dqkv.shape, DType::f32);
  {
    const Scope inner(stream);
    const Tensor space = workspace(stream, a.heads, false);
    const AttentionBackward plain{
        .d_o = d_o, .o = o, .qkv = qkv, .lse = a.lse, .dqkv = dqkv, .heads = a.heads, .document_starts = a.document_starts};
    if (stream.device() == Device::cpu) OCTET_RUN(emulated_attention_backward, plain, a.specs.p, a.specs.dp, space);
  }
  encode_columns(stream, dqkv, dqkv_groups(a.heads, a.specs), a.dqkv);
}

Tensor gpu_workspace(Stream& stream, const QkvShape& heads, std::int64_t tokens, bool forward, DType gradients) {
  const cuda::CodedProblem problem{heads, tokens, gradients};
  std::int64_t bytes = cuda::coded_attention_workspace_estimate(problem, forward);
#ifdef OCTET_HAS_CUDA
  if (cuda::available()) bytes = cuda::coded_attention_workspace_bytes(problem, forward);
#endif
  return stream.empty({bytes}, DType::u8, Lifetime::scratch, Category::workspace);
}

}  // namespace

ColumnGroups qkv_groups(const QkvShape& h, const AttentionSpecs& s) {
  return {{{h.heads * h.head_dim, s.q}, {h.kv_heads * h.head_dim, s.k}, {h.kv_heads * h.value_dim(), s.v}}};
}
ColumnGroups dqkv_groups(const QkvShape& h, const AttentionSpecs& s) {
  return {{{h.heads * h.head_dim, s.dq}, {h.kv_heads * h.head_dim, s.dk}, {h.kv_heads * h.value_dim(), s.dv}}};
}
ColumnGroups o_groups(const QkvShape& h, const AttentionSpecs& s) { return {{{h.out_columns(), s.o}, {}, {}}}; }
ColumnGroups d_o_groups(const QkvShape& h, const AttentionSpecs& s) { return {{{h.out_columns(), s.d_o}, {}, {}}}; }

void coded_attention_forward(Stream& stream, const CodedAttentionForward& a) {
  check_operands(stream, a, CodedPass::forward);
  count(stream, a.heads.head_dim + a.heads.value_dim(), a.heads, a.qkv.shape[0]);
  const Scope scope(stream);
  if (stream.target().device == Device::cpu) return emulate(stream, a);
  const Tensor space = gpu_workspace(stream, a.heads, a.qkv.shape[0], true, DType::e4m3);
#ifdef OCTET_HAS_CUDA
  if (stream.device() == Device::cuda) cuda::coded_attention_forward(stream.queue(), a, space);
#endif
}

void coded_attention_backward(Stream& stream, const CodedAttentionBackward& a) {
  check_operands(stream, a, CodedPass::backward);
  check_codes("d_o", a.d_o, a.o.shape), check_codes("dqkv", a.dqkv, a.qkv.shape);
  check_spec("d_o", a.specs.d_o, a.d_o.dtype), check_spec("dp", a.specs.dp, a.d_o.dtype);
  for (const QuantizeSpec* s : {&a.specs.dq, &a.specs.dk, &a.specs.dv}) check_spec("dq, dk and dv", *s, a.dqkv.dtype);
  check(a.d_o.dtype == a.dqkv.dtype, "coded attention: d_o is {} and dqkv {}, wanted one format", a.d_o.dtype, a.dqkv.dtype);
  count(stream, 3 * a.heads.head_dim + 2 * a.heads.value_dim(), a.heads, a.qkv.shape[0]);
  const Scope scope(stream);
  if (stream.target().device == Device::cpu) return emulate(stream, a);
  const Tensor space = gpu_workspace(stream, a.heads, a.qkv.shape[0], false, a.d_o.dtype);
#ifdef OCTET_HAS_CUDA
  if (stream.device() == Device::cuda) cuda::coded_attention_backward(stream.queue(), a, space);
#endif
}

std::string coded_attention_obstacle(const Target& target, const QkvShape& heads, bool documents, CodedPass pass) {
  if (heads.part) return "parts of sequences (ranks.context) have no attention in 8 bits";
  for (const std::int64_t columns : {heads.head_dim, heads.value_dim()})
    if (columns % 16 != 0) return format("heads of {} columns are not a multiple of 16", columns);
  if (target.device != Device::cuda) return "";
  if (!heads.is_usual())
    return "values have another width than keys, or scores another factor than 1 / sqrt(d), which cuDNN's kernels of 8 bits lack";
  if (heads.head_dim != gpu_head_dim)
    return format("heads have {} columns, and on a GPU cuDNN has kernels for {}", heads.head_dim, gpu_head_dim);
  if (documents) return "on a GPU cuDNN's kernels of 8 bits do not mask documents";
  if (target.generation != 9)
    return format("this GPU is of generation {}, and cuDNN's kernels are used on Hopper alone", target.generation);
  if (pass == CodedPass::backward && target.deterministic) return "on a GPU cuDNN adds the gradient of queries in no fixed order";
  return "";
}

}  // namespace octet::ops

namespace octet::cuda {

std::int64_t coded_attention_workspace_estimate(const CodedProblem& p, bool forward) {
  constexpr std::int64_t slack = 1 << 16;
  const std::int64_t values = p.tokens * p.heads.heads * p.heads.head_dim;
  if (forward) return maxima_bytes + slack;
  // Of cuDNN: sums of the gradient of q in f32, of k and v per query head in bf16, delta, and copies of operands.
  return maxima_bytes + slack + values * (4 + 2 + 2 + 4) + p.tokens * p.heads.heads * 8;
}

}  // namespace octet::cuda
