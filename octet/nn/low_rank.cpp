#include "octet/nn/low_rank.hpp"

#include <cmath>

#include "octet/nn/weight_gradient.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/quantize/operand_values.hpp"

namespace octet::nn {

LowRankAdapter::LowRankAdapter(const std::string& path, const AdapterShard& part, double factor, std::unique_ptr<AdapterInput> input,
                               scaling::Precision& precision)
    : part_(part),
      factor_(factor),
      dtype_(precision.activations()),
      input_(std::move(input)),
      a_(path + ".lora_a", part.a, {Init::Kind::normal, 1 / std::sqrt(3.0 * double(part.whole_in))}, ParameterRole::matrix, part.cut_of_a),
      b_(path + ".lora_b", part.b, {Init::Kind::zeros}, ParameterRole::matrix, part.cut_of_b),
      a_weight_(a_, precision.plan_adapter(path, part.b[1]), true),
      b_weight_(b_, precision.plan_adapter_weight(), true) {
  a_.matrices = std::int64_t(part.blocks.size());
  for (Parameter* p : {&a_, &b_}) p->gradient.add_use(GradientUse::product);
}

// [out, n R]: the B of each block in its rows and its R columns, times s.
Quantized LowRankAdapter::spread(Stream& stream) const {
  const Tensor wide = empty(stream, {part_.out, width()});
  ops::spread_blocks(stream, b_weight_.operand(stream, Weight::Side::rows).codes, part_.blocks, float(factor_), wide);
  return {.codes = wide};
}

void LowRankAdapter::forward(Stream& stream, const Quantized& x, const Tensor& y, const scaling::Pass& pass) {
  const Scope scope(stream);
  a_weight_.refresh(stream, pass), b_weight_.refresh(stream, pass);
  const Quantized values = input_->rows(stream, ops::operand_values(stream, x, dtype_), pass);
  const Tensor u = empty(stream, {values.rows(), width()});
  ops::gemm(stream, {.a = values, .b = a_weight_.operand(stream, Weight::Side::rows), .d = u});
  ops::gemm(stream, {.a = {.codes = u}, .b = spread(stream), .d = y, .accumulate = true});
}

// u and its gradient are made as [n R, T], as the products that sum over tokens read them.
void LowRankAdapter::backward(Stream& stream, const Tensor& dy, const Quantized& x, const Tensor& dx) {
  const Scope scope(stream);
  const std::int64_t tokens = dy.shape[0];
  const Quantized values = input_->cols(stream, ops::operand_values(stream, x, dtype_)), gradient{.codes = dy}, wide = spread(stream);
  const Quantized u{.codes = empty(stream, {width(), tokens})}, du{.codes = empty(stream, {width(), tokens})};
  ops::gemm(stream, {.a = a_weight_.operand(stream, Weight::Side::rows), .b = ops::transposed(values), .d = u.codes});
  ops::gemm(stream, {.a = ops::transposed(wide), .b = gradient, .d = du.codes});
  add_product(stream, b_, GradientUse::product, [&](const Gradient::Target& db) {
    const Tensor dwide = stream.empty({part_.out, width()}, DType::f32);
    ops::gemm(stream, {.a = ops::transposed(gradient), .b = u, .d = dwide});
    ops::collect_blocks(stream, dwide, part_.blocks, float(factor_), db.accumulate, db.data);
  });
  add_product(stream, a_, GradientUse::product,
              [&](const Gradient::Target& da) { ops::gemm(stream, {.a = du, .b = values, .d = da.data, .accumulate = da.accumulate}); });
  if (!dx) return;
  input_->backward(stream, dx, [&](const Tensor& d, bool accumulate) {
    ops::gemm(stream, {.a = ops::transposed(du), .b = a_weight_.operand(stream, Weight::Side::cols), .d = d, .accumulate = accumulate});
  });
}

void LowRankAdapter::visit(Visitor& visitor) {
  for (Parameter* p : {&a_, &b_}) visitor.adapter(*p);
  for (Weight* w : {&a_weight_, &b_weight_}) visitor.weight(*w);
}

}  // namespace octet::nn
