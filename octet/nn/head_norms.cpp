#include "octet/nn/head_norms.hpp"

#include "octet/nn/norm.hpp"
#include "octet/nn/saved_activation.hpp"
#include "octet/ops/columns/columns.hpp"

namespace octet::nn {
namespace {

// The columns of one norm of so many heads.
std::int64_t normed_columns(const AttentionConfig& c, std::int64_t heads) { return c.norms_of_all_heads ? heads * c.head_dim : c.head_dim; }

class RmsHeadNorms final : public HeadNorms {
 public:
  RmsHeadNorms(const std::string& path, const AttentionConfig& c, scaling::Precision& precision, Partition& p)
      : config_(c),
        q_(path + ".q_norm", normed_columns(c, c.heads), NormConfig(*c.head_norm_eps, c.head_norm_offset), p),
        k_(path + ".k_norm", normed_columns(c, c.kv_heads), NormConfig(*c.head_norm_eps, c.head_norm_offset), p),
        q_input_(path + ".q", c.heads * c.head_dim, precision, c.recomputed),
        k_input_(path + ".k", c.kv_heads * c.head_dim, precision, c.recomputed) {}

  bool any() const override { return true; }

  // Query and key heads are columns of qkv; a norm reads and writes them as rows of their own.
  void forward(Stream& stream, const Tensor& qkv, const scaling::Pass& pass, QkvSaved* saved) override {
    const std::int64_t tokens = qkv.shape[0], d = config_.head_dim;
    const bool saves = saved != nullptr;
    const auto apply = [&](const RmsNorm& norm, const SavedActivation& saving, std::int64_t heads, std::int64_t column) {
      const Scope scope(stream);
      const Tensor rows = stream.empty({tokens, heads * d}, qkv.dtype, saving.region(pass, saves), Category::activations);
      ops::copy_columns(stream, {.from = qkv, .from_column = column, .to = rows, .columns = heads * d});
      const std::int64_t columns = normed_columns(config_, heads);
      RmsNorm::Input input =
          RmsNorm::input(stream, rows.reshaped({rows.count() / columns, columns}), saves ? pass.keep : Region(Lifetime::scratch));
      ops::Sink normal = plain_sink(stream, input.x.shape, qkv.dtype, scaling::Pass{}, false);
      norm.forward(stream, input, normal);
      ops::copy_columns(stream, {.from = normal.plain.reshaped(rows.shape), .to = qkv, .to_column = column, .columns = heads * d});
      return saves ? NormedRows{saving.save(stream, rows, pass), input.inv_rms, {}} : NormedRows{};
    };
    const NormedRows q = apply(q_, q_input_, config_.heads, 0), k = apply(k_, k_input_, config_.kv_heads, config_.heads * d);
    if (saves) saved->q = q, saved->k = k;
  }

  void backward(Stream& stream, const Tensor& dqkv, const QkvSaved& saved) override {
    const auto apply = [&](RmsNorm& norm, const NormedRows& input, std::int64_t column) {
      const Scope scope(stream);
      const Shape one_head{input.inv_rms.count(), norm.weight.shape[0]};
      const Tensor rows = stream.empty(input.x.shape, dqkv.dtype), d = rows.reshaped(one_head);
      ops::copy_columns(stream, {.from = dqkv, .from_column = column, .to = rows, .columns = rows.shape[1]});
      norm.backward(stream, d, {values_of(stream, input.x).reshaped(one_head), input.inv_rms, true}, d, false);
      ops::copy_columns(stream, {.from = rows, .to = dqkv, .to_column = column, .columns = rows.shape[1]});
    };
    apply(q_, saved.q, 0);
    apply(k_, saved.k, config_.heads * config_.head_dim);
  }

  void visit(Visitor& visitor) override { q_.visit(visitor), k_.visit(visitor); }

 private:
  AttentionConfig config_;
  RmsNorm q_, k_;
  SavedActivation q_input_, k_input_;
};

}  // namespace

std::unique_ptr<HeadNorms> make_head_norms(const std::string& path, const AttentionConfig& own, scaling::Precision& precision,
                                           Partition& p) {
  if (!own.head_norm_eps) return std::make_unique<HeadNorms>();
  return std::make_unique<RmsHeadNorms>(path, own, precision, p);
}

}  // namespace octet::nn
