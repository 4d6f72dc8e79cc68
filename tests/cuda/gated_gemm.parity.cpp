#include "octet/ops/gated_gemm/gated_gemm.hpp"

#include "tests/cuda/gemm_operands.hpp"
#include "tests/cuda/sinks.hpp"

// Sums are exact, and the rest has one formula in one order of operations: the same bits, also of the codes.

namespace octet::parity {
namespace {

struct Try {
  OperandKind a, b;
  std::int64_t rows, F, K;
  bool bias;
  ops::Gate gate = ops::Gate::silu;

  std::string name() const {
    return format("gated_gemm {} x {} {}", a.name, b.name, Shape{rows, 2 * F, K}) + (bias ? " bias" : "") +
           (gate == ops::Gate::gelu ? " gelu" : "");
  }
};

void run(Side& side, const Try& t) {
  const Quantized a = put(side, operand(t.a, t.rows, t.K, 1, Values::sixteenths)),
                  b = put(side, operand(t.b, 2 * t.F, t.K, 2, Values::sixteenths));
  const Tensor bias = t.bias ? side.gaussian({2 * t.F}, 3) : Tensor{};
  each_sink(side, {t.rows, t.F}, DType::bf16,
            [&](Stream& stream, ops::Sink& y) {
              const Tensor d = side.poisoned({t.rows, 2 * t.F}, DType::bf16);
              ops::gated_gemm(stream, {{.a = a, .b = b, .d = d, .bias = bias}, t.gate}, y);
            },
            {{.cols = false, .measured = false}, {.cols = false, .keep_plain = true, .measured = false}, {.count = false}});
}

std::vector<Case> make() {
  using enum ScaleRule;
  const ScaleBlock tensor{0, 0}, row{1, 0}, v32{1, 32}, v128{1, 128}, square{128, 128};
  const auto kind = [](const char* name, ScaleRule rule, ScaleBlock block) {
    return OperandKind{name, {.format = DType::e4m3, .rule = rule, .rows = block, .cols = block}};
  };
  const OperandKind bf16{"bf16", {.format = DType::bf16}}, f16{"f16", {.format = DType::f16}, DType::f16},
      by_tensor = kind("tensor", power_of_two, tensor), by_row = kind("row", power_of_two, row),
      by_line = kind("1x128", power_of_two, v128), by_square = kind("128x128", power_of_two, square), mx = kind("1x32", e8m0, v32);
  const std::pair<OperandKind, OperandKind> pairs[] = {
      {bf16, bf16}, {f16, f16}, {by_tensor, by_tensor}, {by_row, by_row}, {by_line, by_line}, {by_line, by_square}, {mx, mx}};
  std::vector<Case> cases;
  const auto add = [&](const Try& t) { cases.push_back({t.name(), [t](Side& side) { run(side, t); }}); };
  for (const auto& [a, b] : pairs) {
    for (const auto& [F, K] : {std::pair{128, 128}, {384, 1056}, {1280, 4096}, {200, 512}, {4096, 544}})
      for (const bool bias : {false, true}) add({a, b, 1, F, K, bias});
    add({a, b, 1, 256, 512, true, ops::Gate::gelu});
    add({a, b, 2, 256, 512, false});
    add({a, b, 1, 256, 24, false});  // no whole pieces
  }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
