#include "octet/ops/gemm/gemm.hpp"
#include "tests/cuda/gemm_operands.hpp"

// Products with up to eight rows, which a kernel of Octet makes on a GPU, against plain loops in double. Bound: products of codes and of
// 16-bit values are exact in FP32 or one rounding, and sums are FP32 in any order, so an error is at most gamma_n sum |a||b|, where n
// counts the additions of a result, the multiplications by descales and the bias.

namespace octet::parity {
namespace {

using testing::dot_bound, testing::unit_f32;

struct Try {
  OperandKind a, b;
  Shape mnk;
  DType result = DType::bf16;
  bool bias = false, accumulate = false;

  std::string name() const {
    return format("few rows {} x {} {} {}{}{}", a.name, b.name, mnk, result, bias ? " bias" : "", accumulate ? " accumulate" : "");
  }
};

std::vector<double> values_of(const Quantized& q) {
  std::vector<double> out;
  for (std::int64_t r = 0; r < q.rows(); ++r)
    for (std::int64_t c = 0; c < q.cols(); ++c) out.push_back(double(value_at(q, r, c)));
  return out;
}

// d of the exact sums, and the sums of magnitudes.
std::vector<double> multiply_in_double(const Try& t, const Quantized& a, const Quantized& b, const Tensor& bias, const Tensor& d) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const std::vector<double> x = values_of(a), w = values_of(b);
  std::vector<double> sizes;
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = 0, size = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        const double product = x[std::size_t(m * K + k)] * w[std::size_t(n * K + k)];
        sum += product, size += std::fabs(product);
      }
      const double others[] = {t.bias ? double(bias.f32()[n]) : 0.0, t.accumulate ? double(value_at(d, m * N + n)) : 0.0};
      for (const double other : others) sum += other, size += std::fabs(other);
      testing::put(d, m * N + n, float(sum));
      sizes.push_back(size);
    }
  return sizes;
}

void run(Side& side, const Try& t) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const Quantized a = put(side, operand(t.a, M, K, 1, Values::gaussian)), b = put(side, operand(t.b, N, K, 2, Values::gaussian));
  const Tensor d = t.accumulate ? side.gaussian({M, N}, 3, t.result) : side.poisoned({M, N}, t.result), bias = side.gaussian({N}, 4);
  std::vector<double> sizes;
  if (side.device() == Device::cpu) sizes = multiply_in_double(t, a, b, bias, d);
  else ops::gemm(side.stream(), {.a = a, .b = b, .d = d, .bias = t.bias ? bias : Tensor{}, .accumulate = t.accumulate});
  side.result("d", d, {.bound = [=](std::int64_t i) { return dot_bound(double(K) + 8, unit_f32, sizes[std::size_t(i)]); }});
}

std::vector<Case> make() {
  std::vector<Case> cases;
  const auto add = [&](const Try& t) { cases.push_back({t.name(), [t](Side& side) { run(side, t); }}); };
  const std::vector<OperandKind> all = operand_kinds();
  const auto kind = [&](std::string_view name) {
    for (const OperandKind& k : all)
      if (name == k.name) return k;
    throw ContractError(format("few rows: no kind {}", name));
  };
  const std::pair<const char*, const char*> pairs[] = {{"bf16", "bf16"},     {"f16", "f16"},
                                                       {"tensor", "tensor"}, {"row", "row"},
                                                       {"tensor", "row"},    {"1x128", "128x128"},
                                                       {"row", "128x128"},   {"1x128 quotient", "1x128 quotient"},
                                                       {"1x128", "tensor"},  {"1x32 e8m0", "1x32 e8m0"}};
  // Whole pieces of 16 bytes, slices of K and none, the last columns alone, and sizes whose values are loaded one by one.
  const std::pair<std::int64_t, std::int64_t> sides[] = {{1, 1}, {19, 33}, {64, 512}, {130, 1032}, {257, 2064}, {4, 14336}, {9000, 272}};
  for (const auto& [left, right] : pairs)
    for (const auto& [N, K] : sides)
      for (const std::int64_t M : {1, 2, 3, 5, 8}) {
        if (M > 3 && N * K > 1000000) continue;  // the loops' time
        const bool odd = M % 2 == 1, whole = N % 2 == 0;
        add({.a = kind(left),
             .b = kind(right),
             .mnk = {M, N, K},
             .result = odd     ? DType::bf16
                       : whole ? DType::f32
                               : DType::f16,
             .bias = whole,
             .accumulate = M > 2});
      }
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
