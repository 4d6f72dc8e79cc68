#include "octet/nn/dot_product.hpp"

#include "octet/nn/coded_dot_product.hpp"
#include "octet/nn/whole_keys.hpp"
#include "octet/ops/attention/attention.hpp"

namespace octet::nn {
namespace {

// Of whole sequences, or of the own parts. Backward gathers keys and values again, since all of them would be the largest saved activation.
class PlainDotProduct final : public DotProduct {
 public:
  explicit PlainDotProduct(bool rope) : rope_(rope) {}

  Region values_region(const scaling::Pass& pass, bool saves) const override { return saves ? pass.keep : Region(Lifetime::scratch); }

  void forward(Stream& stream, const ops::QkvShape& heads, const BlockContext& context, const Tensor& qkv, ops::Sink& o, const Tensor& lse,
               const scaling::Pass&, Saved* saved) override {
    ops::RopeForward turn{.qkv = qkv, .heads = heads, .document_starts = context.document_starts, .places = context.cache->places()};
    if (rope_) turn.table = context.rope;
    const Scope scope(stream);
    ops::AttentionForward a{.qkv = qkv, .o = o.plain, .lse = lse, .heads = heads, .document_starts = context.attention_starts()};
    if (context.part) {  // members send keys that are turned
      if (rope_) ops::rope_forward(stream, turn);
      turn.table = {}, a.keys = gather_keys(stream, *context.keys, heads, qkv, Lifetime::scratch);
    }
    context.cache->attend(stream, context.block, turn, a, context.window, o);
    if (saved != nullptr) saved->qkv = qkv;
  }

  void backward(Stream& stream, const ops::QkvShape& heads, const BlockContext& context, const Gradient& g, const Saved& saved,
                const scaling::Pass&) override {
    ops::AttentionBackward a{.d_o = g.d_o,
                             .o = g.o,
                             .qkv = saved.qkv,
                             .lse = g.lse,
                             .dqkv = g.dqkv,
                             .heads = heads,
                             .document_starts = context.attention_starts()};
    if (!context.part) return ops::attention_backward(stream, a);
    const Scope scope(stream);
    a.dkeys = stream.empty({a.qkv.shape[0] * context.keys->members(), heads.columns() - heads.key_column(0)}, a.qkv.dtype);
    {
      const Scope gathered(stream);
      a.keys = gather_keys(stream, *context.keys, heads, a.qkv, Lifetime::scratch);
      ops::attention_backward(stream, a);
    }
    reduce_key_gradients(stream, *context.keys, heads, a.dkeys, a.dqkv);
  }

 private:
  bool rope_;
};

}  // namespace

std::unique_ptr<DotProduct> make_dot_product(scaling::AttentionPlan plan, bool rope, Partition& p) {
  if (plan.codes()) return std::make_unique<CodedDotProduct>(std::move(plan), rope, p);
  return std::make_unique<PlainDotProduct>(rope);
}

}  // namespace octet::nn
