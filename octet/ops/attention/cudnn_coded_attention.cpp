#ifdef OCTET_HAS_CUDNN

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "octet/ops/attention/coded_attention.kernels.hpp"
#include "octet/ops/attention/cudnn_library.hpp"

namespace octet::cuda {
namespace {

using fe::graph::Tensor_attributes;
using Graph = std::shared_ptr<fe::graph::Graph>;
using Node = std::shared_ptr<Tensor_attributes>;
using Size = std::int64_t;

// Identifiers of the graphs' tensors.
enum Id : Size {
  q_id = 1,
  k_id,
  v_id,
  o_id,
  stats_id,
  do_id,
  dq_id,
  dk_id,
  dv_id,
  descale_q_id,
  descale_k_id,
  descale_v_id,
  descale_s_id,
  descale_o_id,
  descale_do_id,
  descale_dp_id,
  scale_s_id,
  scale_o_id,
  scale_dp_id,
  scale_dq_id,
  scale_dk_id,
  scale_dv_id,
  first_maximum_id
};

// Where the matrices lie: cuDNN's dimensions are [B, heads, S, d].
struct Layout {
  Size B, H, Hkv, S, d, columns;
  fe::DataType_t gradients;
  explicit Layout(const CodedProblem& p)
      : B(p.tokens / p.heads.sequence),
        H(p.heads.heads),
        Hkv(p.heads.kv_heads),
        S(p.heads.sequence),
        d(p.heads.head_dim),
        columns(p.heads.columns()),
        gradients(p.gradients == DType::e5m2 ? fe::DataType_t::FP8_E5M2 : fe::DataType_t::FP8_E4M3) {}

  std::vector<Size> dims() const { return {B, H, S, d}; }
  std::vector<Size> key_dims() const { return {B, Hkv, S, d}; }
  std::vector<Size> in_qkv() const { return {S * columns, d, columns, 1}; }
  std::vector<Size> in_o() const { return {S * H * d, d, H * d, 1}; }
  float scale() const { return 1.0f / std::sqrt(float(d)); }
};

Node input(const Graph& graph, Id id, const std::vector<Size>& dims, const std::vector<Size>& strides, fe::DataType_t type) {
  return graph->tensor(Tensor_attributes().set_uid(id).set_name(std::to_string(id)).set_dim(dims).set_stride(strides).set_data_type(type));
}
Node factor(const Graph& graph, Id id) { return input(graph, id, {1, 1, 1, 1}, {1, 1, 1, 1}, fe::DataType_t::FLOAT); }

void describe_stats(Tensor_attributes& t, const Layout& l) {
  t.set_uid(stats_id).set_data_type(fe::DataType_t::FLOAT).set_dim({l.B, l.H, l.S, 1}).set_stride({l.H * l.S, l.S, 1, 1});
}
// The i-th maximum that a graph returns.
void returns_maximum(const Node& t, Size i) {
  t->set_output(true).set_uid(first_maximum_id + i).set_dim({1, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(fe::DataType_t::FLOAT);
}
void returns_codes(const Node& t, Id id, const std::vector<Size>& dims, const std::vector<Size>& strides, fe::DataType_t type) {
  t->set_output(true).set_uid(id).set_dim(dims).set_stride(strides).set_data_type(type);
}

Graph new_graph() {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::FP8_E4M3)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

BuiltGraph build_forward(const Layout& l) {
  constexpr auto e4m3 = fe::DataType_t::FP8_E4M3;
  const Graph graph = new_graph();
  const auto q = input(graph, q_id, l.dims(), l.in_qkv(), e4m3), k = input(graph, k_id, l.key_dims(), l.in_qkv(), e4m3),
             v = input(graph, v_id, l.key_dims(), l.in_qkv(), e4m3);
  const auto [o, stats, of_p, of_o] = graph->sdpa_fp8(
      q, k, v, factor(graph, descale_q_id), factor(graph, descale_k_id), factor(graph, descale_v_id), factor(graph, descale_s_id),
      factor(graph, scale_s_id), factor(graph, scale_o_id),
      fe::graph::SDPA_fp8_attributes().set_name("forward").set_generate_stats(true).set_causal_mask(true).set_attn_scale(l.scale()));
  returns_codes(o, o_id, l.dims(), l.in_o(), e4m3);
  returns_maximum(of_p, 0), returns_maximum(of_o, 1);
  describe_stats(stats->set_output(true), l);
  return built(graph, "attention forward in 8 bits");
}

BuiltGraph build_backward(const Layout& l) {
  constexpr auto e4m3 = fe::DataType_t::FP8_E4M3;
  const Graph graph = new_graph();
  const auto q = input(graph, q_id, l.dims(), l.in_qkv(), e4m3), k = input(graph, k_id, l.key_dims(), l.in_qkv(), e4m3),
             v = input(graph, v_id, l.key_dims(), l.in_qkv(), e4m3), o = input(graph, o_id, l.dims(), l.in_o(), e4m3),
             d_o = input(graph, do_id, l.dims(), l.in_o(), l.gradients);
  Tensor_attributes stats;
  describe_stats(stats, l);
  const auto f = [&](Id id) { return factor(graph, id); };
  const auto [dq, dk, dv, of_dq, of_dk, of_dv, of_dp] = graph->sdpa_fp8_backward(
      q, k, v, o, d_o, graph->tensor(stats.set_name("stats")), f(descale_q_id), f(descale_k_id), f(descale_v_id), f(descale_o_id),
      f(descale_do_id), f(descale_s_id), f(descale_dp_id), f(scale_s_id), f(scale_dq_id), f(scale_dk_id), f(scale_dv_id), f(scale_dp_id),
      fe::graph::SDPA_fp8_backward_attributes().set_name("backward").set_causal_mask(true).set_attn_scale(l.scale()));
  returns_codes(dq, dq_id, l.dims(), l.in_qkv(), l.gradients), returns_codes(dk, dk_id, l.key_dims(), l.in_qkv(), l.gradients);
  returns_codes(dv, dv_id, l.key_dims(), l.in_qkv(), l.gradients);
  returns_maximum(of_dp, 0), returns_maximum(of_dq, 1), returns_maximum(of_dk, 2), returns_maximum(of_dv, 3);
  return built(graph, "attention backward in 8 bits");
}

struct Known {
  std::mutex mutex;
  std::map<CodedProblem, BuiltGraph> forward, backward;
};
Known& known() {
  static Known& it = *new Known;
  return it;
}

const BuiltGraph& graph_of(const CodedProblem& p, bool forward) {
  if (cudnn_library().version.empty())
    throw DeviceError(format("attention in 8 bits needs cuDNN: {}; set recipe.attention = \"bf16\"", cudnn_library().why_not));
  const std::lock_guard lock(known().mutex);
  auto& all = forward ? known().forward : known().backward;
  if (const auto it = all.find(p); it != all.end()) return it->second;
  return all[p] = forward ? build_forward(Layout(p)) : build_backward(Layout(p));
}

using Places = std::unordered_map<Size, void*>;

// Queries, keys and values, or their gradients, in a fused matrix of codes.
void put_columns(Places& at, const ops::QkvShape& h, const Tensor& x, const Id (&ids)[3]) {
  std::byte* const row = x.as<std::byte>();
  at[ids[0]] = row + h.query_column(0), at[ids[1]] = row + h.key_column(0), at[ids[2]] = row + h.value_column(0);
}

template <class Args>
Places inputs(const Args& a) {
  Places at;
  put_columns(at, a.heads, a.qkv, {q_id, k_id, v_id});
  at[o_id] = a.o.data, at[stats_id] = a.lse.data;
  at[descale_q_id] = a.specs.q.descale.data, at[descale_k_id] = a.specs.k.descale.data, at[descale_v_id] = a.specs.v.descale.data;
  at[descale_s_id] = a.specs.p.descale.data, at[scale_s_id] = a.specs.p.scale.data;
  return at;
}

// Runs a graph whose maxima are at the start of the workspace, then raises those of the quantizers.
void run(Queue queue, const BuiltGraph& graph, Places& at, const Tensor& workspace, Size returned,
         const std::array<float*, most_maxima>& maxima, const char* what) {
  std::byte* const space = workspace.as<std::byte>();
  clear(queue, space, std::size_t(maxima_bytes));
  for (Size i = 0; i < returned; ++i) at[first_maximum_id + i] = space + i * maxima_stride;
  run_graph(queue, *graph.graph, at, space + maxima_bytes, what);
  raise_maxima(queue, workspace.f32(), maxima);
}

template <class Args>
CodedProblem problem_of(const Args& a, DType gradients) {
  return {a.heads, a.qkv.shape[0], gradients};
}

}  // namespace

std::int64_t coded_attention_workspace_bytes(const CodedProblem& p, bool forward) { return maxima_bytes + graph_of(p, forward).bytes; }

void coded_attention_forward(Queue queue, const ops::CodedAttentionForward& a, const Tensor& workspace) {
  if (a.qkv.shape[0] == 0) return;
  Places at = inputs(a);
  at[scale_o_id] = a.specs.o.scale.data;
  run(queue, graph_of(problem_of(a, DType::e4m3), true), at, workspace, 2, {a.specs.p.amax.f32(), a.specs.o.amax.f32()},
      "attention forward in 8 bits");
}

void coded_attention_backward(Queue queue, const ops::CodedAttentionBackward& a, const Tensor& workspace) {
  if (a.qkv.shape[0] == 0) return;
  Places at = inputs(a);
  put_columns(at, a.heads, a.dqkv, {dq_id, dk_id, dv_id});
  at[do_id] = a.d_o.data, at[descale_o_id] = a.specs.o.descale.data, at[descale_do_id] = a.specs.d_o.descale.data;
  at[descale_dp_id] = a.specs.dp.descale.data, at[scale_dp_id] = a.specs.dp.scale.data;
  at[scale_dq_id] = a.specs.dq.scale.data, at[scale_dk_id] = a.specs.dk.scale.data, at[scale_dv_id] = a.specs.dv.scale.data;
  run(queue, graph_of(problem_of(a, a.d_o.dtype), false), at, workspace, 4,
      {a.specs.dp.amax.f32(), a.specs.dq.amax.f32(), a.specs.dk.amax.f32(), a.specs.dv.amax.f32()}, "attention backward in 8 bits");
}

}  // namespace octet::cuda

#endif
