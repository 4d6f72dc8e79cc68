#ifdef OCTET_HAS_CUDNN

#include "octet/ops/attention/cudnn_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "octet/base/log.hpp"
#include "octet/ops/attention/cudnn_library.hpp"

namespace octet::cuda {
namespace {

using fe::graph::Tensor_attributes;
using Size = std::int64_t;

// Identifiers of the graphs' tensors.
enum Id : Size { q_id = 1, k_id, v_id, o_id, stats_id, do_id, dq_id, dk_id, dv_id, starts_id };

// The shapes that graphs are built for, the first ones met: a program that meets a new length with every token must not build for each.
constexpr std::size_t most_problems = 64;

// Where the matrices of one segment of queries lie: cuDNN's dimensions are [B, heads, S, d]. The segment ends at the last of its keys, and
// all of a sequence is one segment.
struct Sizes {
  Size B, H, Hkv, S, d, dv;
  Size first, rows;           // its first row among those that a sequence has here, and all of these
  Size keys, whole;           // keys that it reads, and the tokens of a whole sequence
  Size columns, key_columns;  // of the matrices with queries, and with keys and values
  float scale;                // of scores
  bool documents;
  fe::DataType_t type;
  Sizes(const AttentionProblem& p, int segment)
      : B(p.tokens / p.heads.sequence),
        H(p.heads.heads),
        Hkv(p.heads.kv_heads),
        S(p.heads.sequence / p.segments()),
        d(p.heads.head_dim),
        dv(p.heads.value_dim()),
        first(segment * S),
        rows(p.heads.sequence),
        keys(p.heads.place(first) + S),
        whole(p.heads.whole()),
        columns(p.heads.columns()),
        key_columns(p.heads.part ? p.heads.key_columns() : columns),
        scale(p.heads.scale()),
        documents(p.documents),
        type(p.dtype == DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16) {}
};

// Scores of keys before a query's document become -inf, then those after the query. `starts`: i32 [B, 1, S, 1].
std::shared_ptr<Tensor_attributes> mask_documents(const std::shared_ptr<fe::graph::Graph>& graph,
                                                  const std::shared_ptr<Tensor_attributes>& scores,
                                                  const std::shared_ptr<Tensor_attributes>& starts, const Sizes& sizes) {
  using fe::graph::Pointwise_attributes;
  const auto pointwise = [](const char* name, fe::PointwiseMode_t mode) { return Pointwise_attributes().set_name(name).set_mode(mode); };
  const auto key =
      graph->pointwise(scores, pointwise("key", fe::PointwiseMode_t::GEN_INDEX).set_axis(3).set_compute_data_type(fe::DataType_t::INT32));
  key->set_data_type(fe::DataType_t::INT32);
  const auto inside =
      graph->pointwise(key, starts, pointwise("in_document", fe::PointwiseMode_t::CMP_GE).set_compute_data_type(fe::DataType_t::BOOLEAN));
  inside->set_data_type(fe::DataType_t::BOOLEAN);
  const auto lowest = std::make_shared<Tensor_attributes>(-std::numeric_limits<float>::infinity());
  const auto masked = graph->pointwise(scores, lowest, inside, pointwise("mask", fe::PointwiseMode_t::BINARY_SELECT));
  if (sizes.keys == sizes.S) return fe::graph::attn::score_modifiers::causal_mask(graph, masked);
  return fe::graph::attn::score_modifiers::causal_mask_bottom_right(graph, masked, sizes.S, sizes.keys, nullptr, nullptr);
}

// The matrices with keys and values, or with their gradients.
struct KeyMatrix {
  std::byte *keys, *values;
  KeyMatrix(const ops::QkvShape& h, const Tensor& fused, const Tensor& apart) {
    const Size size = Size(size_of(fused.dtype));
    keys = apart ? apart.as<std::byte>() : fused.as<std::byte>() + h.key_column(0) * size;
    values = keys + h.kv_heads * h.head_dim * size;
  }
  /// Of the same form elsewhere.
  KeyMatrix moved(std::byte* to) const {
    KeyMatrix out = *this;
    out.keys = to, out.values = to + (values - keys);
    return out;
  }
};

class Segment {
 public:
  Segment(const AttentionProblem& p, int segment) : sizes_(p, segment), forward_(build_forward()), backward_(build_backward(false)) {}

  Size workspace_bytes(AttentionPass pass) {
    return pass == AttentionPass::forward ? forward_.bytes : gradient(pass == AttentionPass::deterministic_backward).bytes;
  }

  void forward(Queue queue, const ops::AttentionForward& a, void* workspace) {
    std::unordered_map<Size, void*> at = inputs(a, KeyMatrix(a.heads, a.qkv, a.keys));
    run_graph(queue, *forward_.graph, at, workspace, "attention forward");
  }

  void backward(Queue queue, const ops::AttentionBackward& a, const KeyMatrix& gradients, void* workspace) {
    std::unordered_map<Size, void*> at = inputs(a, KeyMatrix(a.heads, a.qkv, a.keys));
    at[do_id] = row(a.d_o), at[dq_id] = row(a.dqkv), at[dk_id] = gradients.keys, at[dv_id] = gradients.values;
    run_graph(queue, *gradient(a.deterministic).graph, at, workspace, "attention backward");
  }

  const Sizes& sizes() const { return sizes_; }

 private:
  using Graph = std::shared_ptr<fe::graph::Graph>;
  using Node = std::shared_ptr<Tensor_attributes>;
  using Built = BuiltGraph;

  const Built& gradient(bool deterministic) {
    if (deterministic && deterministic_.graph == nullptr) deterministic_ = build_backward(true);
    return deterministic ? deterministic_ : backward_;
  }

  // The segment's first row of x, in the first sequence.
  std::byte* row(const Tensor& x) const {
    return x.as<std::byte>() + sizes_.first * Size(size_of(x.dtype)) * (x.shape.rank == 2 ? x.shape[1] : 1);
  }
  template <class Args>
  std::unordered_map<Size, void*> inputs(const Args& a, const KeyMatrix& keys) const {
    std::unordered_map<Size, void*> at{{q_id, row(a.qkv)}, {k_id, keys.keys}, {v_id, keys.values}, {o_id, row(a.o)}};
    at[stats_id] = a.lse.f32() + sizes_.first * sizes_.B * sizes_.H;
    if (a.document_starts) at[starts_id] = row(a.document_starts);
    return at;
  }

  Graph new_graph() const {
    auto graph = std::make_shared<fe::graph::Graph>();
    graph->set_io_data_type(sizes_.type).set_intermediate_data_type(fe::DataType_t::FLOAT).set_compute_data_type(fe::DataType_t::FLOAT);
    return graph;
  }
  std::vector<Size> dims() const { return {sizes_.B, sizes_.H, sizes_.S, sizes_.d}; }
  std::vector<Size> key_dims() const { return {sizes_.B, sizes_.Hkv, sizes_.keys, sizes_.d}; }
  std::vector<Size> value_dims() const { return {sizes_.B, sizes_.Hkv, sizes_.keys, sizes_.dv}; }
  std::vector<Size> out_dims() const { return {sizes_.B, sizes_.H, sizes_.S, sizes_.dv}; }
  std::vector<Size> in_qkv() const { return {sizes_.rows * sizes_.columns, sizes_.d, sizes_.columns, 1}; }
  std::vector<Size> in_keys() const { return {sizes_.whole * sizes_.key_columns, sizes_.d, sizes_.key_columns, 1}; }
  std::vector<Size> in_values() const { return {sizes_.whole * sizes_.key_columns, sizes_.dv, sizes_.key_columns, 1}; }
  std::vector<Size> in_o() const { return {sizes_.rows * sizes_.H * sizes_.dv, sizes_.dv, sizes_.H * sizes_.dv, 1}; }

  static Node input(const Graph& graph, Id id, const std::vector<Size>& dims, const std::vector<Size>& strides) {
    return graph->tensor(Tensor_attributes().set_uid(id).set_name(std::to_string(id)).set_dim(dims).set_stride(strides));
  }
  // lse, packed as cuDNN orders it.
  void describe_stats(Tensor_attributes& t) const {
    t.set_uid(stats_id)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({sizes_.B, sizes_.H, sizes_.S, 1})
        .set_stride({sizes_.H * sizes_.S, sizes_.S, 1, 1});
  }

  // The causal mask, within documents if they are masked.
  template <class Attributes>
  Attributes masked(const Graph& graph, Attributes attributes) const {
    if (!sizes_.documents)
      return sizes_.keys == sizes_.S ? attributes.set_causal_mask(true) : attributes.set_causal_mask_bottom_right(true);
    const Node starts = graph->tensor(Tensor_attributes()
                                          .set_uid(starts_id)
                                          .set_name("document_starts")
                                          .set_data_type(fe::DataType_t::INT32)
                                          .set_dim({sizes_.B, 1, sizes_.S, 1})
                                          .set_stride({sizes_.rows, sizes_.rows, 1, 1}));
    return attributes.set_score_mod(
        [starts, sizes = sizes_](const Graph& part, const Node& scores) { return mask_documents(part, scores, starts, sizes); });
  }

  Built build_forward() const {
    const Graph graph = new_graph();
    const auto q = input(graph, q_id, dims(), in_qkv()), k = input(graph, k_id, key_dims(), in_keys()),
               v = input(graph, v_id, value_dims(), in_values());
    const auto [o, stats] = graph->sdpa(
        q, k, v, masked(graph, fe::graph::SDPA_attributes().set_name("forward").set_generate_stats(true).set_attn_scale(sizes_.scale)));
    o->set_output(true).set_uid(o_id).set_dim(out_dims()).set_stride(in_o());
    describe_stats(stats->set_output(true));
    return built(graph, "attention forward");
  }

  Built build_backward(bool deterministic) const {
    const Graph graph = new_graph();
    const auto q = input(graph, q_id, dims(), in_qkv()), k = input(graph, k_id, key_dims(), in_keys()),
               v = input(graph, v_id, value_dims(), in_values()), o = input(graph, o_id, out_dims(), in_o()),
               d_o = input(graph, do_id, out_dims(), in_o());
    Tensor_attributes kept;
    describe_stats(kept);
    const auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, o, d_o, graph->tensor(kept.set_name("stats")),
                                                   masked(graph, fe::graph::SDPA_backward_attributes()
                                                                     .set_name("backward")
                                                                     .set_attn_scale(sizes_.scale)
                                                                     .set_deterministic_algorithm(deterministic)));
    dq->set_output(true).set_uid(dq_id).set_dim(dims()).set_stride(in_qkv());
    dk->set_output(true).set_uid(dk_id).set_dim(key_dims()).set_stride(in_keys());
    dv->set_output(true).set_uid(dv_id).set_dim(value_dims()).set_stride(in_values());
    return built(graph, deterministic ? "deterministic attention backward" : "attention backward");
  }

  Sizes sizes_;
  Built forward_, backward_, deterministic_;
};

// The segments of a problem. Of two, the second one's gradients of keys go to their place, and the first one's are added to them.
class Graphs final : public CudnnAttention {
 public:
  explicit Graphs(const AttentionProblem& p) : first_bytes_(first_gradient_bytes(p)) {
    for (int i = 0; i < p.segments(); ++i) segments_.emplace_back(p, i);
  }

  Size workspace_bytes(AttentionPass pass) override {
    Size bytes = 0;
    for (Segment& s : segments_) bytes = std::max(bytes, s.workspace_bytes(pass));
    return bytes + (pass == AttentionPass::forward ? 0 : first_bytes_);
  }

  void forward(Queue queue, const ops::AttentionForward& a, void* workspace) override {
    for (Segment& s : segments_) s.forward(queue, a, workspace);
  }

  void backward(Queue queue, const ops::AttentionBackward& a, void* workspace) override {
    const KeyMatrix whole(a.heads, a.dqkv, a.dkeys);
    std::byte *const scratch = static_cast<std::byte*>(workspace), *const rest = scratch + first_bytes_;
    segments_.back().backward(queue, a, whole, rest);
    if (segments_.size() == 1) return;
    segments_.front().backward(queue, a, whole.moved(scratch), rest);
    const Tensor first{.data = scratch, .shape = a.dkeys.shape, .dtype = a.dkeys.dtype};
    add_key_gradients(queue, a.heads.whole(), first, segments_.front().sizes().keys, a.dkeys, segments_.back().sizes().keys);
  }

 private:
  std::vector<Segment> segments_;
  Size first_bytes_;
};

constexpr Size head_dim_multiple = 8, most_head_dim = 128;  // limits in cuDNN's documentation; and heads of latent attention:
constexpr Size latent_keys = 192, latent_values = 128;
constexpr Size fewest_tokens = 512;  // fewer do not repay building the graphs

bool suits(const AttentionProblem& p) {
  const Size d = p.heads.head_dim, dv = p.heads.value_dim();
  const bool known = (d % head_dim_multiple == 0 && dv % head_dim_multiple == 0 && d <= most_head_dim && dv <= most_head_dim) ||
                     (d == latent_keys && dv == latent_values);
  return p.dtype != DType::f32 && known && p.tokens >= fewest_tokens && p.heads.sequence > p.segments();
}

struct Known {
  std::mutex mutex;
  std::map<AttentionProblem, std::unique_ptr<Graphs>> problems;
};
Known& known() {
  static Known& it = *new Known;
  return it;
}

std::unique_ptr<Graphs> build(const AttentionProblem& p) try {
  if (cudnn_library().version.empty()) throw DeviceError(cudnn_library().why_not);
  return std::make_unique<Graphs>(p);
} catch (const std::exception& e) {
  log::warn("attention of {} heads of {} and {} columns, {} tokens in {} of {}{}: {}; Octet's own kernels, which are slow, compute it",
            p.heads.heads, p.heads.head_dim, p.heads.value_dim(), p.tokens, p.heads.part ? "parts of sequences" : "sequences",
            p.heads.whole(), p.documents ? ", documents masked" : "", e.what());
  return nullptr;
}

}  // namespace

std::string cudnn_version(std::string* why_not) {
  if (why_not != nullptr) *why_not = cudnn_library().why_not;
  return cudnn_library().version;
}

CudnnAttention* cudnn_attention(const AttentionProblem& p) {
  if (!suits(p)) return nullptr;
  const std::lock_guard lock(known().mutex);
  auto& problems = known().problems;
  if (const auto it = problems.find(p); it != problems.end()) return it->second.get();
  if (problems.size() >= most_problems) return nullptr;
  return (problems[p] = build(p)).get();
}

}  // namespace octet::cuda

#endif
