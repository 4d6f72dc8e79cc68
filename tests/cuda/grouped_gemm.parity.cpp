#include "octet/ops/clear_padding/clear_padding.hpp"
#include "octet/ops/combine_rows/combine_rows.hpp"
#include "octet/ops/gather_rows/gather_rows.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/cuda/experts.hpp"
#include "tests/cuda/sinks.hpp"

// Products of the same codes. Sums are in another order; those of 8-bit codes may be in a tensor core's short accumulator.

namespace octet::parity {
namespace {

struct Layout {
  std::string name;
  ops::QuantizeSpec activations, weights;
  DType values;             // of the tensors before quantization, and of results
  bool per_matrix = false;  // each expert's matrix has a scale
};

std::vector<Layout> layouts() {
  std::vector<Layout> out;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    out.push_back({to_text(dtype), {.format = dtype}, {.format = dtype}, dtype});
  constexpr DType e4m3 = DType::e4m3;
  const ScaleBlock row{1, 0}, v128{1, 128}, v32{1, 32}, square{128, 128};
  using enum ScaleRule;
  const auto spec = [](ScaleRule rule, ScaleBlock block) {
    return ops::QuantizeSpec{.format = e4m3, .rule = rule, .rows = block, .cols = block};
  };
  out.push_back({"tensor", spec(quotient, {}), spec(quotient, {}), DType::bf16});
  out.push_back({"tensor of each expert", spec(quotient, {}), spec(quotient, {}), DType::bf16, true});
  out.push_back({"row", spec(power_of_two, row), spec(power_of_two, row), DType::bf16});
  out.push_back({"1x128 by 128x128", spec(power_of_two, v128), spec(power_of_two, square), DType::bf16});
  out.push_back({"1x128 by 128x128 quotient", spec(quotient, v128), spec(quotient, square), DType::bf16});
  out.push_back({"1x32 e8m0", spec(e8m0, v32), spec(e8m0, v32), DType::bf16});
  return out;
}

Case grouped(const Choosing& c, std::int64_t N, std::int64_t K, const Layout& layout) {
  return {format("grouped_gemm {} {} N {} K {}", layout.name, c.name(), N, K), [=](Side& side) {
            Stream& s = side.stream();
            const ops::ExpertMap map = map_on(side, c);
            const DType dtype = layout.values;
            const auto operands = [&](const ops::QuantizeSpec& spec, Shape shape) {
              return ops::make_sink(
                  s, spec, {.shape = shape, .dtype = dtype, .cols = true, .rows_region = Lifetime::run, .cols_region = Lifetime::run});
            };
            const Shape stack{c.experts * N, K};
            ops::QuantizeSpec of_weights = layout.weights;
            if (layout.per_matrix) of_weights.scale_each(N);
            ops::Sink x = operands(layout.activations, {map.rows(), K}), dy = operands(layout.activations, {map.rows(), N}),
                      w = operands(of_weights, stack);
            ops::gather_rows(s, side.gaussian({c.tokens, K}, 1, dtype), map, x);
            ops::gather_rows(s, side.gaussian({c.tokens, N}, 2, dtype), map, dy);
            const Tensor values = side.gaussian(stack, 3, dtype);
            ops::quantize(s, values, w);
            if (layout.per_matrix) {
              side.result("codes of the stack", w.codes.rows.codes, same_bits());
              side.result("its transposed codes", w.codes.cols.codes, same_bits());
              side.result("its descales", w.codes.rows.descales, same_bits());
            }
            const Tensor y = side.poisoned({map.rows(), N}, dtype), dx = side.poisoned({map.rows(), K}, dtype),
                         dw = side.poisoned({c.experts * N, K}, DType::f32), more = side.gaussian({c.experts * N, K}, 4);
            const auto& groups = map.groups;
            ops::grouped_gemm(s, ops::GroupedRowsGemm{.a = x.codes.rows, .stack = w.codes.rows, .groups = groups, .d = y});
            ops::grouped_gemm(
                s, ops::GroupedRowsGemm{.a = dy.codes.rows, .stack = w.codes.cols, .stack_columns = true, .groups = groups, .d = dx});
            ops::grouped_gemm(s, ops::GroupedColumnsGemm{.a = dy.codes.cols, .b = x.codes.cols, .groups = groups, .d = dw});
            ops::grouped_gemm(
                s, ops::GroupedColumnsGemm{.a = dy.codes.cols, .b = x.codes.cols, .groups = groups, .d = more, .accumulate = true});
            const Tensor halves = side.gaussian({c.experts * N, K}, 6, DType::bf16);
            ops::grouped_gemm(
                s, ops::GroupedColumnsGemm{.a = dy.codes.cols, .b = x.codes.cols, .groups = groups, .d = halves, .accumulate = true});
            const Tensor added = side.gaussian({map.rows(), N}, 5, dtype), of_added = side.poisoned({c.tokens, N}, dtype);
            ops::grouped_gemm(
                s, ops::GroupedRowsGemm{.a = x.codes.rows, .stack = w.codes.rows, .groups = groups, .d = added, .accumulate = true});
            ops::combine_rows(s, added, map, of_added);
            // Rows of tokens alone: others are undefined.
            const Tensor of_y = side.poisoned({c.tokens, N}, dtype), of_dx = side.poisoned({c.tokens, K}, dtype);
            ops::combine_rows(s, y, map, of_y), ops::combine_rows(s, dx, map, of_dx);
            const Nearness rounded = within_share_of_largest(dtype == DType::f32 ? 0x1p-18 : 0x1p-7);
            const Nearness summed = is_fp8(layout.activations.format) ? within_share_of_largest(0x1p-10) : rounded;
            side.result("y", of_y, rounded), side.result("dx", of_dx, rounded), side.result("y added", of_added, rounded);
            side.result("dw", dw, summed), side.result("dw added", more, summed);
            side.result("dw added in BF16", halves, within_share_of_largest(0x1p-7));
          }};
}

// Products of an adapter's rank: a transposed view of rows by columns that lie [N, R].
Case of_mixed_orders(const Choosing& c, std::int64_t M, std::int64_t N) {
  return {format("grouped_gemm along rows of [R, {}] by [{}, R], {}", M, N, c.name()), [=](Side& side) {
            Stream& s = side.stream();
            const ops::ExpertMap map = map_on(side, c);
            const Tensor u = side.gaussian({map.rows(), M}, 1, DType::bf16), x = side.gaussian({N, map.rows()}, 2, DType::bf16),
                         d = side.poisoned({c.experts * M, N}, DType::f32);
            ops::clear_padding(s, map.groups, u);
            ops::grouped_gemm(
                s, ops::GroupedColumnsGemm{.a = {.codes = u, .transposed = true}, .b = {.codes = x}, .groups = map.groups, .d = d});
            side.result("d", d, within_share_of_largest(0x1p-7));
          }};
}

Case cleared(const Choosing& c, DType dtype) {
  return {format("clear_padding {} {}", dtype, c.name()), [=](Side& side) {
            const ops::ExpertMap map = map_on(side, c);
            const Tensor x = side.gaussian({map.rows(), 24}, 1, dtype);
            ops::clear_padding(side.stream(), map.groups, x);
            side.result("x", x, same_bits());
          }};
}

std::vector<Case> make() {
  std::vector<Case> cases{of_mixed_orders({900, 2, 5, 128, 3}, 16, 768), of_mixed_orders({200, 2, 4, 128, 4}, 8, 256)};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Choosing& c : choosings()) cases.push_back(cleared(c, dtype));
  cases.push_back(grouped({900, 2, 5, 128, 3}, 16, 768, layouts()[1]));  // matrices of an adapter's rank
  cases.push_back(grouped({900, 2, 5, 128, 3}, 768, 16, layouts()[1]));
  for (const Layout& layout : layouts()) {
    cases.push_back(grouped({200, 2, 4, 128, 4}, 256, 384, layout));
    cases.push_back(grouped({100, 1, 3, 128, 2}, 128, 128, layout));
    cases.push_back(grouped({900, 2, 5, 128, 3}, 384, 768, layout));
    if (layout.weights.rows.rows != 128) cases.push_back(grouped({40, 2, 5, 16, 4}, 48, 80, layout));
  }
  cases.push_back(grouped({0, 1, 3, 128, 3}, 128, 128, layouts()[1]));
  cases.push_back(grouped({33, 1, 1, 8, 1}, 7, 5, layouts()[0]));
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
