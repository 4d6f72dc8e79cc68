#include "octet/nn/mlp.hpp"

#include "octet/nn/branch.hpp"
#include "octet/ops/gated_gemm/gated_gemm.hpp"
#include "octet/ops/gelu/gelu.hpp"

namespace octet::nn {

void SwiGlu::forward(Stream& stream, const ops::Saved& h, ops::Sink& y, ops::Sink* codes) const {
  ops::swiglu_forward(stream, h, y, codes, gate);
}
void SwiGlu::backward(Stream& stream, const Tensor& dy, const ops::Saved& h, ops::Sink& dh) const {
  ops::swiglu_backward(stream, dy, h, dh, gate);
}
void SwiGlu::forward_product(Stream& stream, const ops::Gemm& product, ops::Sink& y) const { ops::gated_gemm(stream, {product, gate}, y); }
void Gelu::forward(Stream& stream, const ops::Saved& h, ops::Sink& y, ops::Sink* codes) const { ops::gelu_forward(stream, h, y, codes); }
void Gelu::backward(Stream& stream, const Tensor& dy, const ops::Saved& h, ops::Sink& dh) const { ops::gelu_backward(stream, dy, h, dh); }
void Gelu::forward_product(Stream& stream, const ops::Gemm& product, ops::Sink& y) const {
  ops::gemm(stream, product);
  ops::gelu_forward(stream, product.d, y);
}

namespace {

// The own rows of each of the inputs, such as gate and up.
Cut cut_of_inputs(const Partition& p, int inputs, std::int64_t hidden, std::int64_t columns) {
  const IndexRange own = own_range(p, hidden);
  const std::int64_t n = own.count * columns;
  Cut out{.whole = columns > 1 ? Shape{inputs * hidden, columns} : Shape{inputs * hidden}};
  for (int i = 0; i < inputs; ++i) out.pieces.push_back({n, (i * hidden + own.first) * columns, n, n});
  out.alone = inputs * n;
  return with_copies(p, out);
}

}  // namespace

template <class Activation>
Mlp<Activation>::Mlp(const std::string& path, const Config& c, scaling::Precision& precision, const scaling::Site& site, Partition& p)
    : partition_(p),
      in_(path + Activation::first,
          {.in = c.width,
           .out = Activation::inputs * own_range(p, c.hidden).count,
           .bias = c.bias,
           .cut = cut_of_inputs(p, Activation::inputs, c.hidden, c.width),
           .bias_cut = cut_of_inputs(p, Activation::inputs, c.hidden, 1),
           .matrices = Activation::inputs},
          precision, site),
      out_(path + ".down",
           {.in = own_range(p, c.hidden).count,
            .out = c.width,
            .bias = c.bias,
            .init = {Init::Kind::normal, c.out_deviation},
            .cut = own_columns(p, {c.width, c.hidden}),
            .bias_cut = own_copy(p, {c.width}),
            .bias_share = {p.member(), p.members()}},
           precision, site),
      h_(path + ".h", out_.in(), precision, c.recomputed),
      activation_(c.activation),
      recompute_activation_(c.recompute_activation || h_.coded()) {}

template <class Activation>
void Mlp<Activation>::forward(Stream& stream, const QTensor& x, const BlockContext&, const Tensor& y, const scaling::Pass& pass,
                              Saved* saved) {
  const Scope scope(stream);
  const std::int64_t tokens = x.rows.rows();
  const Tensor h = stream.empty({tokens, in_.out()}, in_.activations(), h_.region(pass, saved != nullptr), Category::activations);
  if (tokens <= ops::few_rows && y && saved == nullptr && !in_.is_adapted() && !stream.observed()) {  // h is the activation's alone
    ops::Sink hidden = out_.operand(stream, {.cols = false, .tokens = tokens}, pass);
    in_.forward_by(stream, x, h, pass, [&](const ops::Gemm& product) {
      fill_divided(stream, partition_, hidden, [&](ops::Sink& f) { activation_.forward_product(stream, product, f); });
    });
    return out_.forward(stream, operands_of(hidden), y, pass, nullptr);
  }
  in_.forward(stream, x, h, pass, saved ? &saved->in_linear : nullptr);
  const bool keep = saved != nullptr && !recompute_activation_;
  if (!y && !keep) {
    if (saved != nullptr) saved->h = h_.save(stream, h, pass);
    return;
  }
  ops::Sink hidden = out_.operand(stream, {.rows = bool(y), .cols = keep, .tokens = tokens}, pass);
  const ops::Saved kept = h_.saved_in_passing(stream, h, pass, saved != nullptr, [&](ops::Sink* codes) {
    fill_divided(stream, partition_, hidden, [&](ops::Sink& f) { activation_.forward(stream, h, f, codes); });
  });
  if (saved != nullptr) saved->h = kept;
  if (keep) saved->out_linear.x = hidden.codes.cols;
  if (y) out_.forward(stream, operands_of(hidden), y, pass, nullptr);
}

template <class Activation>
void Mlp<Activation>::backward(Stream& stream, const Tensor& dy, const BlockContext&, const Saved& saved, const Tensor& dx,
                               const scaling::Pass& pass) {
  const Scope scope(stream);
  const std::int64_t tokens = dy.shape[0] * partition_.members();
  const Tensor dhidden = stream.empty({tokens, out_.in()}, dy.dtype);
  backward_of_branch(stream, out_, partition_, dy, saved.out_linear, saved.gather_x, dhidden, pass, [&](Linear::Saved& hidden) {
    if (!recompute_activation_) return;
    ops::Sink again = out_.operand(stream, {.rows = false, .tokens = tokens}, scaling::recomputing_for(pass));
    fill_divided(stream, partition_, again, [&](ops::Sink& f) { activation_.forward(stream, saved.h, f); });
    hidden.x = again.codes.cols;
  });
  ops::Sink dh = in_.operand(stream, {.tensor = Operand::gradient, .tokens = tokens}, pass);
  fill_divided(stream, partition_, dh, [&](ops::Sink& d) { activation_.backward(stream, dhidden, saved.h, d); });
  backward_and_reduce(stream, in_, partition_, dh, saved.in_linear, dx, pass);
}

template class Mlp<SwiGlu>;
template class Mlp<Gelu>;

}  // namespace octet::nn
