#include "octet/nn/coded_dot_product.hpp"

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/slice.hpp"
#include "octet/ops/rope/rope_codes.hpp"

namespace octet::nn {
namespace {

using scaling::Operand;

// Maxima become the scales of groups: those of all members' heads. Groups of one matrix have their scales from one recipe.
void find_scales(Stream& stream, Partition& p, const ops::QuantizeSpec& spec, DType values, const Tensor& maxima, const Tensor& descales) {
  p.max(stream, maxima);
  ops::scales_of_maxima(stream, spec, values, maxima, maxima, descales);
}

void set_scales(const Tensor& scales, const Tensor& descales, std::initializer_list<ops::QuantizeSpec*> specs) {
  std::int64_t i = 0;
  for (ops::QuantizeSpec* s : specs) s->scale = scales.rows(i, 1), s->descale = descales.rows(i, 1), ++i;
}

}  // namespace

void CodedDotProduct::require_target(const Stream& stream, const ops::QkvShape& heads, const BlockContext& context) const {
  const auto pass = plan_.codes_gradients() ? ops::CodedPass::backward : ops::CodedPass::forward;
  const std::string obstacle = ops::coded_attention_obstacle(stream.target(), heads, bool(context.attention_starts()), pass);
  if (obstacle.empty()) return;
  throw ConfigError(format("{}: attention in 8 bits (recipe.attention = \"{}\"): {}; set recipe.attention = \"bf16\"{}", plan_.path,
                           to_text(plan_.precision), obstacle,
                           plan_.codes_gradients() && stream.target().deterministic ? " or \"fp8_forward\"" : ""));
}

// `operands`: the pass in which q, k and v are encoded; `products`: in which p and o are.
ops::AttentionSpecs CodedDotProduct::forward_specs(const scaling::Pass& operands, const scaling::Pass& products) const {
  return {.q = plan_.of(Operand::q).spec(operands),
          .k = plan_.of(Operand::k).spec(operands),
          .v = plan_.of(Operand::v).spec(operands),
          .p = plan_.of(Operand::p).spec(products),
          .o = plan_.of(Operand::o).spec(products)};
}

void CodedDotProduct::add_backward_specs(ops::AttentionSpecs& s, const scaling::Pass& pass) const {
  s.d_o = plan_.of(Operand::d_o).spec(pass), s.dp = plan_.of(Operand::dp).spec(pass);
  s.dq = plan_.of(Operand::dq).spec(pass), s.dk = plan_.of(Operand::dk).spec(pass), s.dv = plan_.of(Operand::dv).spec(pass);
}

// Codes of q and k at their positions and of v. Returns the descales of scales that come from maxima, in `region`, and sets them.
Tensor CodedDotProduct::encode(Stream& stream, const ops::RopeForward& a, ops::AttentionSpecs& specs, const Tensor& codes,
                               Region region) const {
  const auto groups = [&] { return ops::qkv_groups(a.heads, specs); };
  if (specs.q.scale_known()) {
    if (rope_) ops::rope_codes(stream, {.rope = a, .groups = groups(), .codes = codes});
    else ops::encode_columns(stream, a.qkv, groups(), codes);
    return {};
  }
  const Tensor descales = stream.empty({3}, DType::f32, region, Category::activations), scales = stream.empty({3}, DType::f32);
  if (rope_) ops::rope_maxima(stream, a, groups(), scales);
  else ops::column_maxima(stream, a.qkv, groups(), scales);
  find_scales(stream, partition_, specs.q, a.qkv.dtype, scales, descales);
  set_scales(scales, descales, {&specs.q, &specs.k, &specs.v});
  ops::encode_columns(stream, a.qkv, groups(), codes);
  return descales;
}

void CodedDotProduct::forward(Stream& stream, const ops::QkvShape& heads, const BlockContext& context, const Tensor& qkv, ops::Sink& o,
                              const Tensor& lse, const scaling::Pass& pass, Saved* saved) {
  require_target(stream, heads, context);
  check(context.cache == &no_cache(), "{}: attention in 8 bits reads the keys of its batch alone", plan_.path);
  const Region region = saved != nullptr ? pass.keep : Region(Lifetime::scratch);
  const Scope scope(stream);
  ops::AttentionSpecs specs = forward_specs(pass, pass);
  const Tensor codes = stream.empty(qkv.shape, specs.q.format, region, Category::activations);
  const ops::RopeForward rope{.qkv = qkv, .heads = heads, .table = context.rope, .document_starts = context.document_starts};
  const Tensor descales = encode(stream, rope, specs, codes, region);
  const Tensor o_codes = stream.empty(o.shape, specs.o.format);
  ops::coded_attention_forward(
      stream, {.qkv = codes, .o = o_codes, .lse = lse, .heads = heads, .specs = specs, .document_starts = context.attention_starts()});
  ops::decode_columns(stream, o_codes, ops::o_groups(heads, specs), o.plain);
  ops::quantize(stream, o.plain, o);
  if (saved != nullptr) saved->qkv = codes, saved->descales = descales;
}

void CodedDotProduct::backward(Stream& stream, const ops::QkvShape& heads, const BlockContext& context, const Gradient& g,
                               const Saved& saved, const scaling::Pass& pass) {
  const Scope scope(stream);
  ops::AttentionSpecs specs = forward_specs(scaling::recomputing, scaling::recomputing);           // forward has recorded them
  if (saved.descales) set_scales(saved.descales, saved.descales, {&specs.q, &specs.k, &specs.v});  // nothing encodes them again
  if (plan_.codes_gradients()) return backward_in_codes(stream, heads, context, g, saved, specs, pass);
  const Tensor qkv = stream.empty(saved.qkv.shape, g.dqkv.dtype);
  ops::decode_columns(stream, saved.qkv, ops::qkv_groups(heads, specs), qkv);
  ops::attention_backward(
      stream,
      {.d_o = g.d_o, .o = g.o, .qkv = qkv, .lse = g.lse, .dqkv = g.dqkv, .heads = heads, .document_starts = context.attention_starts()});
}

// o has the values of its codes, or of saved ones of another scale: encoding them by the same scale gives the first ones' bits again.
void CodedDotProduct::backward_in_codes(Stream& stream, const ops::QkvShape& heads, const BlockContext& context, const Gradient& g,
                                        const Saved& saved, ops::AttentionSpecs& specs, const scaling::Pass& pass) const {
  add_backward_specs(specs, pass);
  const Tensor o_codes = stream.empty(g.o.shape, specs.o.format), do_codes = stream.empty(g.d_o.shape, specs.d_o.format),
               gradient = stream.empty(g.dqkv.shape, specs.dq.format);
  ops::encode_columns(stream, g.o, ops::o_groups(heads, specs), o_codes);
  if (!specs.d_o.scale_known()) {
    const Tensor descales = stream.empty({3}, DType::f32);
    const Tensor scales = stream.empty({3}, DType::f32);
    ops::column_maxima(stream, g.d_o, ops::d_o_groups(heads, specs), scales);
    find_scales(stream, partition_, specs.d_o, g.d_o.dtype, scales, descales);
    set_scales(scales, descales, {&specs.d_o});
  }
  ops::encode_columns(stream, g.d_o, ops::d_o_groups(heads, specs), do_codes);
  ops::coded_attention_backward(stream, {.d_o = do_codes,
                                         .o = o_codes,
                                         .qkv = saved.qkv,
                                         .lse = g.lse,
                                         .dqkv = gradient,
                                         .heads = heads,
                                         .specs = specs,
                                         .document_starts = context.attention_starts()});
  ops::decode_columns(stream, gradient, ops::dqkv_groups(heads, specs), g.dqkv);
}

}  // namespace octet::nn
