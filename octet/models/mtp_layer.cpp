#include "octet/models/mtp_layer.hpp"

#include "octet/nn/gathered.hpp"
#include "octet/ops/columns/columns.hpp"

namespace octet::models {

// Members of a partition have copies of M, which they multiply by their own rows.
template <class Block, class Norm>
MtpLayer<Block, Norm>::MtpLayer(const std::string& path, const typename Block::Config& c, const nn::NormConfig& final_norm,
                                scaling::Precision& precision, const scaling::Site& site, nn::Partition& p)
    : partition_(p),
      norm_e_(path + ".enorm", c.attention.width, final_norm, p),
      norm_h_(path + ".hnorm", c.attention.width, final_norm, p),
      project_(path + ".eh_proj",
               {.in = 2 * c.attention.width, .out = c.attention.width, .cut = nn::own_copy(p, {c.attention.width, 2 * c.attention.width})},
               precision, site),
      block_(path, c, precision, site, p),
      norm_(path + ".head_norm", c.attention.width, final_norm, p) {}

// The input of M.
template <class Block, class Norm>
void MtpLayer<Block, Norm>::join(Stream& stream, Saved& saved, const Tensor& both) {
  const std::int64_t width = both.shape[1] / 2;
  const auto half = [&](const Norm& norm, typename Norm::Input& x, std::int64_t column) {
    const Scope scope(stream);
    ops::Sink n = ops::plain_sink(stream.empty(x.x.shape, both.dtype));
    norm.forward(stream, x, n);
    ops::copy_columns(stream, {.from = n.plain, .to = both, .to_column = column, .columns = width});
  };
  half(norm_e_, saved.e, 0), half(norm_h_, saved.h, width);
}

template <class Block, class Norm>
void MtpLayer<Block, Norm>::forward(Stream& stream, const nn::BlockContext& context, const Tensor& e, const Tensor& h, const Tensor& n,
                                    const scaling::Pass& pass, Saved& saved) {
  const auto rows = [&] { return Norm::input(stream, stream.empty(h.shape, h.dtype, pass.keep, Category::activations), pass.keep); };
  saved.e = Norm::input(stream, e, pass.keep), saved.h = Norm::input(stream, h, pass.keep);
  auto x = rows();
  saved.y = rows();
  const Scope scope(stream);
  {
    const Scope part(stream);
    const bool codes = project_.spec(nn::Operand::activation, pass).quantizes();
    const Tensor both = stream.empty({h.shape[0], 2 * h.shape[1]}, h.dtype, codes ? Region(Lifetime::scratch) : pass.forward_operands(),
                                     Category::activations);
    join(stream, saved, both);
    const QTensor operands = nn::operands_of(nn::quantized(stream, project_, {.values = both}, pass, partition_));
    project_.forward(stream, operands, x.x, pass, &saved.project);
  }
  block_.forward(stream, context, x, saved.y, pass, &saved.block);
  saved.end = stream.arena().mark(pass.keep);
  ops::Sink out = ops::plain_sink(n);
  norm_.forward(stream, saved.y, out);
}

template <class Block, class Norm>
void MtpLayer<Block, Norm>::backward(Stream& stream, const nn::BlockContext& context, const Saved& saved, const Tensor& de,
                                     const Tensor& dh, const scaling::Pass& pass) {
  const Scope scope(stream);
  const std::int64_t width = de.shape[1];
  const Tensor d = stream.empty(de.shape, de.dtype);
  norm_.backward(stream, saved.dn, saved.y, d, false);
  stream.arena().release(pass.keep, saved.end);  // memory for recomputed activations
  block_.backward(stream, context, d, saved.block, pass);
  const bool codes = project_.spec(nn::Operand::gradient, pass).quantizes();
  const Tensor dy = nn::lasting(stream, d, codes ? Region(Lifetime::scratch) : pass.backward_operands());
  const Tensor both = stream.empty({d.shape[0], 2 * width}, d.dtype);
  project_.backward(stream, nn::quantized(stream, project_, {.tensor = nn::Operand::gradient, .values = dy}, pass, partition_),
                    saved.project, both, pass.later);
  ops::copy_columns(stream, {.from = both, .to = de, .columns = width});
  norm_e_.backward(stream, de, saved.e, de, false);
  ops::copy_columns(stream, {.from = both, .from_column = width, .to = d, .columns = width});
  norm_h_.backward(stream, d, saved.h, dh, true);
}

template <class Block, class Norm>
void MtpLayer<Block, Norm>::visit(nn::Visitor& visitor) {
  norm_e_.visit(visitor), norm_h_.visit(visitor);
  project_.visit(visitor);
  block_.visit(visitor);
  norm_.visit(visitor);
}

template class MtpLayer<nn::GatedBlock, nn::RmsNorm>;
template class MtpLayer<nn::UnnormedBlock, nn::RmsNorm>;
template class MtpLayer<nn::GeluBlock, nn::LayerNorm>;

}  // namespace octet::models
