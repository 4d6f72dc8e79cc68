#include "octet/nn/low_rank_stack.hpp"

#include <cmath>

#include "octet/ops/adapter_blocks/adapter_blocks.hpp"
#include "octet/ops/clear_padding/clear_padding.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.hpp"
#include "octet/ops/quantize/operand_values.hpp"

namespace octet::nn {

namespace {

// Of the matrices [rows, columns] of all experts.
Cut own_rows(const LowRankStack::Config& c, std::int64_t rows, std::int64_t columns) {
  return Cut::of_rows({c.all * rows, columns}, c.first * rows, c.matrices * rows).shared(c.copies, c.first_copy);
}

}  // namespace

LowRankStack::LowRankStack(const std::string& path, const Config& c, scaling::Precision& precision)
    : config_(c),
      dtype_(precision.activations()),
      a_(path + ".lora_a", {c.matrices * c.rank, c.in}, {Init::Kind::normal, 1 / std::sqrt(3.0 * double(c.in))}, ParameterRole::matrix,
         own_rows(c, c.rank, c.in)),
      b_(path + ".lora_b", {c.matrices * c.out, c.rank}, {Init::Kind::zeros}, ParameterRole::matrix, own_rows(c, c.out, c.rank)),
      a_weight_(a_, precision.plan_adapter(path, c.rank), true),
      b_weight_(b_, precision.plan_adapter_weight(), true) {
  check(c.rank >= 1, "adapter {}: wants a rank", path);
  for (Parameter* p : {&a_, &b_}) p->matrices = c.matrices, p->gradient.add_use(GradientUse::product);
}

// s B of all experts, [E out, R].
Quantized LowRankStack::scaled(Stream& stream) const {
  const ops::RowBlock all{0, b_.shape[0]};
  const Tensor out = stream.empty(b_.shape, dtype_);
  ops::spread_blocks(stream, b_weight_.operand(stream, Weight::Side::rows).codes, std::span(&all, 1), float(config_.factor), out);
  return {.codes = out};
}

// Products along rows need zeros behind the rows of each expert.
Tensor LowRankStack::forward_stack(Stream& stream, const Quantized& x, const ops::RowGroups& groups, const Tensor& y,
                                   const scaling::Pass& pass, Region keep) {
  const Tensor u = stream.empty({x.rows(), config_.rank}, dtype_, keep, Category::activations);
  const Scope scope(stream);
  a_weight_.refresh(stream, pass), b_weight_.refresh(stream, pass);
  ops::grouped_gemm(
      stream,
      ops::GroupedRowsGemm{
          .a = ops::operand_values(stream, x, dtype_), .stack = a_weight_.operand(stream, Weight::Side::rows), .groups = groups, .d = u});
  ops::clear_padding(stream, groups, u);
  if (y)
    ops::grouped_gemm(
        stream, ops::GroupedRowsGemm{.a = Quantized{.codes = u}, .stack = scaled(stream), .groups = groups, .d = y, .accumulate = true});
  return u;
}

void LowRankStack::backward_stack(Stream& stream, const Tensor& dy, const Quantized& x, const Tensor& kept, const ops::RowGroups& groups,
                                  const Tensor& dx, GradientProducts& products) {
  const Scope scope(stream);
  const Quantized gradient{.codes = dy}, u{.codes = kept}, du{.codes = stream.empty(kept.shape, dtype_)};
  ops::grouped_gemm(stream,
                    ops::GroupedRowsGemm{
                        .a = gradient, .stack = ops::transposed(scaled(stream)), .stack_columns = true, .groups = groups, .d = du.codes});
  ops::clear_padding(stream, groups, du.codes);
  products.add(stream, b_, [&](const Gradient::Target& db) {
    const ops::RowBlock all{0, b_.shape[0]};
    const Tensor sums = stream.empty(b_.shape, DType::f32);
    ops::grouped_gemm(stream,
                      ops::GroupedColumnsGemm{.a = ops::transposed(gradient), .b = ops::transposed(u), .groups = groups, .d = sums});
    ops::collect_blocks(stream, sums, std::span(&all, 1), float(config_.factor), db.accumulate, db.data);
  });
  products.add(stream, a_, [&](const Gradient::Target& da) {
    ops::grouped_gemm(stream, ops::GroupedColumnsGemm{.a = ops::transposed(du),
                                                      .b = ops::operand_values(stream, x, dtype_),
                                                      .groups = groups,
                                                      .d = da.data,
                                                      .accumulate = da.accumulate});
  });
  ops::grouped_gemm(stream, ops::GroupedRowsGemm{.a = du,
                                                 .stack = a_weight_.operand(stream, Weight::Side::cols),
                                                 .stack_columns = true,
                                                 .groups = groups,
                                                 .d = dx,
                                                 .accumulate = true});
}

void LowRankStack::visit(Visitor& visitor) {
  for (Parameter* p : {&a_, &b_}) visitor.experts(*p), visitor.adapter(*p);
  for (Weight* w : {&a_weight_, &b_weight_}) visitor.weight(*w);
}

}  // namespace octet::nn
