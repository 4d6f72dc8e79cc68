#include "octet/nn/head_norms.hpp"

#include "octet/nn/norm_sums.hpp"
#include "octet/nn/saved_activation.hpp"
#include "octet/ops/column_norms/column_norms.hpp"
#include "octet/ops/columns/columns.hpp"
#include "octet/ops/quantize/plain_sink.hpp"

namespace octet::nn {
namespace {

// The columns of one norm of so many heads.
std::int64_t normed_columns(const AttentionConfig& c, std::int64_t heads) { return c.norms_of_all_heads ? heads * c.head_dim : c.head_dim; }

// Of a norm's weight: one for each head, or for the columns of the own heads. Members that share key heads have copies of these.
Cut cut_of_norm(const AttentionConfig& whole, const Partition& p, std::int64_t all, const KeyHeads& own) {
  if (!whole.norms_of_all_heads) return own_copy(p, {whole.head_dim});
  const std::int64_t d = whole.head_dim;
  return Cut::of_rows({all * d}, own.heads.first * d, own.heads.count * d).shared(own.copies, own.first_copy);
}

class RmsHeadNorms final : public HeadNorms {
 public:
  RmsHeadNorms(const std::string& path, const AttentionConfig& c, const AttentionConfig& whole, scaling::Precision& precision, Partition& p)
      : config_(c),
        q_(path + ".q_norm", normed_columns(c, c.heads), NormConfig(*c.head_norm_eps, c.head_norm_offset),
           cut_of_norm(whole, p, whole.heads, {.heads = own_range(p, whole.heads)})),
        k_(path + ".k_norm", normed_columns(c, c.kv_heads), NormConfig(*c.head_norm_eps, c.head_norm_offset),
           cut_of_norm(whole, p, whole.kv_heads, own_key_heads(p, whole.kv_heads))),
        sums_(c.norms_of_all_heads ? norm_sums_of(p) : std::make_unique<NormSums>()),
        q_input_(path + ".q", c.heads * c.head_dim, precision, c.recomputed),
        k_input_(path + ".k", c.kv_heads * c.head_dim, precision, c.recomputed) {}

  bool any() const override { return true; }

  // Query and key heads are columns of qkv. Where backward or an observer reads rows of a norm, copies of the heads are its input.
  // Otherwise, as for tokens that are generated, one op norms heads in place, with the same bits.
  void forward(Stream& stream, const Tensor& qkv, const scaling::Pass& pass, QkvSaved* saved) override {
    if (saved == nullptr && !stream.observed() && !config_.norms_of_all_heads) return norm_in_place(stream, qkv);
    const Scope all(stream);
    const std::int64_t tokens = qkv.shape[0], d = config_.head_dim;
    const bool saves = saved != nullptr;
    const Region region = saves ? pass.keep : Region(Lifetime::scratch);
    const NormSums::OfRows known =
        sums_->statistics(stream, {{{.norm = q_, .x = {qkv, 0}}, {.norm = k_, .x = {qkv, first_key()}}}}, region);
    const auto apply = [&](const RmsNorm& norm, const SavedActivation& saving, std::int64_t heads, std::int64_t column,
                           const Tensor& inv_rms) {
      const Scope scope(stream);
      const Tensor rows = stream.empty({tokens, heads * d}, qkv.dtype, saving.region(pass, saves), Category::activations);
      ops::copy_columns(stream, {.from = qkv, .from_column = column, .to = rows, .columns = heads * d});
      const std::int64_t columns = normed_columns(config_, heads);
      const Tensor of_norm = rows.reshaped({rows.count() / columns, columns});
      RmsNorm::Input input = inv_rms ? RmsNorm::Input{of_norm, inv_rms, true} : RmsNorm::input(stream, of_norm, region);
      ops::Sink normal = ops::plain_sink(stream.empty(input.x.shape, qkv.dtype));
      norm.forward(stream, input, normal);
      ops::copy_columns(stream, {.from = normal.plain.reshaped(rows.shape), .to = qkv, .to_column = column, .columns = heads * d});
      return saves ? NormedRows{saving.save(stream, rows, pass), input.inv_rms, {}} : NormedRows{};
    };
    const NormedRows q = apply(q_, q_input_, config_.heads, 0, known[0]), k = apply(k_, k_input_, config_.kv_heads, first_key(), known[1]);
    if (saves) saved->q = q, saved->k = k;
  }

  void backward(Stream& stream, const Tensor& dqkv, const QkvSaved& saved) override {
    const Scope all(stream);
    const NormSums::OfRows means = sums_->means(
        stream, {{{.norm = q_, .dy = {dqkv, 0}, .saved = saved.q}, {.norm = k_, .dy = {dqkv, first_key()}, .saved = saved.k}}});
    const auto apply = [&](RmsNorm& norm, const NormedRows& input, std::int64_t column, const Tensor& mean) {
      const Scope scope(stream);
      const Shape one_head{input.inv_rms.count(), norm.weight.shape[0]};
      const Tensor rows = stream.empty(input.x.shape, dqkv.dtype), d = rows.reshaped(one_head);
      ops::copy_columns(stream, {.from = dqkv, .from_column = column, .to = rows, .columns = rows.shape[1]});
      norm.backward(stream, d, {values_of(stream, input.x).reshaped(one_head), input.inv_rms, true}, d, false, mean);
      ops::copy_columns(stream, {.from = rows, .to = dqkv, .to_column = column, .columns = rows.shape[1]});
    };
    apply(q_, saved.q, 0, means[0]);
    apply(k_, saved.k, first_key(), means[1]);
  }

  void visit(Visitor& visitor) override { q_.visit(visitor), k_.visit(visitor); }

 private:
  std::int64_t first_key() const { return config_.heads * config_.head_dim; }

  void norm_in_place(Stream& stream, const Tensor& qkv) const {
    const ops::NormedColumns q{q_.weight.value.values(), 0, config_.heads}, k{k_.weight.value.values(), first_key(), config_.kv_heads};
    ops::column_norms(stream, {.x = qkv, .ranges = {q, k}, .eps = float(*config_.head_norm_eps), .offset = config_.head_norm_offset});
  }

  AttentionConfig config_;
  RmsNorm q_, k_;
  std::unique_ptr<NormSums> sums_;
  SavedActivation q_input_, k_input_;
};

}  // namespace

std::unique_ptr<HeadNorms> make_head_norms(const std::string& path, const AttentionConfig& own, const AttentionConfig& whole,
                                           scaling::Precision& precision, Partition& p) {
  if (!own.head_norm_eps) return std::make_unique<HeadNorms>();
  return std::make_unique<RmsHeadNorms>(path, own, whole, precision, p);
}

}  // namespace octet::nn
