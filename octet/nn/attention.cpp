#include "octet/nn/attention.hpp"

#include "octet/nn/branch.hpp"

namespace octet::nn {
namespace {

Attention::Config with_own_heads(Attention::Config c, const Partition& p) {
  c.heads = own_range(p, c.heads).count, c.kv_heads = own_key_heads(p, c.kv_heads).heads.count;
  return c;
}

Linear::Config out_config(const Partition& p, const Attention::Config& whole) {
  const std::int64_t columns = whole.heads * whole.value_dim();
  return {.in = own_range(p, columns).count,
          .out = whole.width,
          .bias = whole.out_bias,
          .init = {Init::Kind::normal, whole.out_deviation},
          .cut = own_columns(p, {whole.width, columns}),
          .bias_cut = own_copy(p, {whole.width}),
          .bias_share = {p.member(), p.members()}};
}

using Form = std::variant<FusedQkv, LatentQkv>;

Form make_form(const std::string& path, const Attention::Config& own, const Attention::Config& whole, scaling::Precision& precision,
               const scaling::Site& site, Partition& p) {
  if (whole.latent) return Form(std::in_place_type<LatentQkv>, path, own, whole, precision, site, p);
  return Form(std::in_place_type<FusedQkv>, path, own, whole, precision, site, p);
}

}  // namespace

Attention::Attention(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : partition_(p),
      heads_(with_own_heads(c, p).heads),
      qkv_(make_form(path, with_own_heads(c, p), c, precision, site, p)),
      product_(make_dot_product(precision.plan_attention({.path = path + ".scores", .layer = site.layer, .layers = site.layers}),
                                std::visit([](const auto& form) { return form.leaves_rotation(); }, qkv_), p)),
      out_(path + ".out", out_config(p, c), precision, site),
      saved_o_(path + ".o", out_.in(), precision, c.recomputed) {
  precision.plan_saved_values(path + ".q,k,v", "errors of queries and keys would grow with the scores");
}

// An observer gets the values, which it may change, before they are encoded.
ops::Sink Attention::operand_of(Stream& stream, const Tensor& o, const OperandRequest& request, const scaling::Pass& pass,
                                const std::function<void(ops::Sink&)>& attend) {
  if (request.rows && !stream.observed()) {
    ops::Sink operand = out_.operand(stream, request, pass);
    fill_divided(stream, partition_, operand, attend);
    return operand;
  }
  ops::Sink values = ops::plain_sink(o);
  attend(values);
  stream.observe(out_.path(), "x", o);
  return request.rows ? quantized(stream, out_, request, pass, partition_) : values;
}

void Attention::forward(Stream& stream, const QTensor& x, const BlockContext& context, const Tensor& y, const scaling::Pass& pass,
                        Saved* saved) {
  const Scope scope(stream);
  const DType dtype = first().activations();
  const bool saves = saved != nullptr;
  const Region region = saves ? pass.keep : Region(Lifetime::scratch);
  const std::int64_t tokens = x.rows.rows();
  const ops::QkvShape heads = shape(context);
  const Tensor qkv = stream.empty({tokens, heads.columns()}, dtype, product_->values_region(pass, saves), Category::activations);
  const bool keep = saves && !saved_o_.coded();
  const Region region_of_o =
      keep && !out_.spec(Operand::activation, pass).quantizes() ? pass.forward_operands() : saved_o_.region(pass, saves);
  const Tensor o = stream.empty({tokens, out_.in()}, dtype, region_of_o, Category::activations);
  const Tensor lse = stream.empty({heads_, tokens}, DType::f32, region, Category::activations);

  std::visit([&](auto& form) { form.forward(stream, x, context, qkv, pass, saves ? &saved->qkv : nullptr); }, qkv_);
  const auto attend = [&](ops::Sink& to) {
    product_->forward(stream, heads, context, qkv, to, lse, pass, saves ? &saved->product : nullptr);
  };
  const ops::Sink operand = operand_of(stream, o, {.rows = bool(y) || keep, .cols = keep, .values = o}, pass, attend);
  if (y) out_.forward(stream, operands_of(operand), y, pass, nullptr);
  if (!saves) return;
  saved->out_linear.x = operand.codes.cols, saved->lse = lse;
  saved->o = saved_o_.save(stream, o, pass);
}

void Attention::backward(Stream& stream, const Tensor& dy, const BlockContext& context, const Saved& saved, const Tensor& dx,
                         const scaling::Pass& pass) {
  const Scope scope(stream);
  const ops::QkvShape heads = shape(context);
  const Region region = std::visit([&](const auto& form) { return form.gradient_region(pass); }, qkv_);
  const Tensor d_o = stream.empty(saved.o.shape, saved.o.dtype),
               dqkv = stream.empty({saved.lse.shape[1], heads.columns()}, saved.o.dtype, region);
  {
    const Scope inner(stream);
    const Tensor o = values_of(stream, saved.o);
    backward_of_branch(stream, out_, partition_, dy, saved.out_linear, saved.gather_x, d_o, pass, [&](Linear::Saved& operand) {
      if (!saved.o.coded()) return;
      const Tensor x = out_.spec(Operand::activation, pass).quantizes() ? o : lasting(stream, o, pass.backward_operands());
      operand.x = quantized(stream, out_, {.rows = false, .values = x}, scaling::recomputing_for(pass), partition_).codes.cols;
    });
    product_->backward(stream, heads, context, {.d_o = d_o, .o = o, .lse = saved.lse, .dqkv = dqkv}, saved.product, pass);
  }
  std::visit([&](auto& form) { form.backward(stream, dqkv, context, saved.qkv, dx, pass); }, qkv_);
}

void Attention::visit(Visitor& visitor) {
  std::visit([&](auto& form) { form.visit(visitor); }, qkv_);
  out_.visit(visitor);
}

}  // namespace octet::nn
