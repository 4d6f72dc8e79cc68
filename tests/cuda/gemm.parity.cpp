#include "octet/ops/gemm/gemm.hpp"

#include <cstring>

#include "tests/cuda/gemm_operands.hpp"

// GEMMs of every layout of scales, by cuBLASLt and by Octet's own kernels. Operands are quantized on the CPU on both sides, so that both
// multiply the same codes. Bounds:
//   f32, bf16, f16: products and sums in FP32, in any order: gamma_n sum |a||b|.
//   fp8: Hopper's tensor cores align the 32 products of a step and the sum so far to the largest of them and cut off all bits below 2^-13
//   of it: 33 terms, each off by at most 2^-13 of a value up to sum |a||b|; for 4 steps where sums are promoted every 128 products,
//   for all K / 32 where not. Source: Khattak & Mikaitis 2025, arXiv 2512.07004.

namespace octet::parity {
namespace {

using testing::dot_bound, testing::unit_f32;

struct Try {
  OperandKind a, b;
  Shape mnk;
  DType result = DType::bf16;
  bool bias = false, accumulate = false, fast = false;
  Values values = Values::gaussian;

  std::string name() const {
    return format("gemm {} x {} {} {}{}{}{}{}", a.name, b.name, mnk, result, bias ? " bias" : "", accumulate ? " accumulate" : "",
                  fast ? " fast" : "", values == Values::positive ? " positive" : "");
  }
};

// Error of the sums alone, relative to sum |a||b|, of the CPU's and of a GPU's.
double relative_bound(const Try& t, DType a, DType b) {
  const double K = double(t.mnk[2]), sums = dot_bound(K + 8, unit_f32, 1);
  if (!is_fp8(a) || !is_fp8(b)) return 2 * sums;
  const double steps = t.fast ? std::ceil(K / 32) : std::min(std::ceil(K / 32), 4.0);
  return 2 * sums + steps * 33 * 0x1p-13;
}

void run(Side& side, const Try& t) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const OperandCodes a = operand(t.a, M, K, 1, t.values), b = operand(t.b, N, K, 2, t.values);
  const Tensor d = side.gaussian({M, N}, 3, t.result), bias = side.gaussian({N}, 4);
  const std::vector<float> before = testing::gaussian(std::size_t(M * N), 3), bias_values = testing::gaussian(std::size_t(N), 4);
  ops::gemm(side.stream(), {.a = put(side, a),
                            .b = put(side, b),
                            .d = d,
                            .bias = t.bias ? bias : Tensor{},
                            .accumulate = t.accumulate,
                            .fast_accumulation = t.fast});
  std::vector<float> size(std::size_t(M * N));
  if (side.stream().device() == Device::cpu) {
    const Tensor sums = side.stream().empty({M, N}, DType::f32);
    ops::gemm(side.stream(), {.a = put(side, magnitudes(a)), .b = put(side, magnitudes(b)), .d = sums});
    std::memcpy(size.data(), sums.data, sums.bytes());
  }
  const double relative = relative_bound(t, a.form.codes.dtype, b.form.codes.dtype);
  const double rounded_bias = t.bias ? std::max(testing::rounding_to(t.result).unit, 2 * unit_f32) : 0;
  side.result("d", d, {.bound = [=](std::int64_t i) {
                // The product may be rounded to the result's type before it is added; it is at most |before| + |d|.
                const double rounded = std::max(testing::rounding_to(t.result).unit, 4 * unit_f32);
                const double others = t.accumulate ? std::fabs(double(before[std::size_t(i)])) * rounded : 0;
                return relative * double(size[std::size_t(i)]) + others +
                       (t.bias ? rounded_bias * std::fabs(double(bias_values[std::size_t(i % N)])) : 0);
              }});
}

// Sums of 16384 positive products, as in a weight's gradient: where they are not promoted they fall short by a fifth.
void run_long(Side& side, const Try& t) {
  const std::int64_t M = t.mnk[0], N = t.mnk[1], K = t.mnk[2];
  const OperandCodes a = operand(t.a, M, K, 1, Values::positive), b = operand(t.b, N, K, 2, Values::positive);
  const Tensor d = side.poisoned({M, N}, DType::f32);
  ops::gemm(side.stream(), {.a = put(side, a), .b = put(side, b), .d = d});
  std::vector<float> value(std::size_t(M * N));
  if (side.stream().device() == Device::cpu) std::memcpy(value.data(), d.data, d.bytes());
  side.result("d", d, {.bound = [=](std::int64_t i) { return 0.002 * std::fabs(double(value[std::size_t(i)])); }});
}

std::vector<Case> make() {
  std::vector<Case> cases;
  const auto add = [&](const Try& t) { cases.push_back({t.name(), [t](Side& side) { run(side, t); }}); };
  const auto all = operand_kinds();
  for (const OperandKind& a : all)
    for (const OperandKind& b : all)
      for (const Values values : {Values::gaussian, Values::positive})
        add({.a = a, .b = b, .mnk = {144, 272, 384}, .result = DType::f32, .values = values});
  for (const OperandKind& k : all)
    for (const OperandKind* other : {&all[4], &all[11], &k})
      for (const DType result : {DType::bf16, DType::f32})
        for (const bool bias : {false, true})
          for (const bool fast : {false, true})
            add({.a = k,
                 .b = *other,
                 .mnk = {128, 160, 640},
                 .result = result,
                 .bias = bias,
                 .accumulate = bias != fast,
                 .fast = fast,
                 .values = Values::positive});
  for (const Shape& s : {Shape{0, 5, 7}, Shape{5, 0, 7}, Shape{5, 7, 0}, Shape{1, 1, 1}, Shape{1, 19, 33}, Shape{19, 1, 33}, Shape{5, 7, 1},
                         Shape{33, 65, 127}, Shape{16, 16, 16}, Shape{48, 80, 208}, Shape{1, 64, 64}, Shape{100, 72, 72}})
    for (const OperandKind& k : all) {
      const bool bias = s[0] % 2 == 1;
      add({.a = k, .b = all[0], .mnk = s, .bias = bias});
      add({.a = k, .b = k, .mnk = s, .result = DType::f32, .bias = bias, .accumulate = bias});
    }
  for (const OperandKind* k : {&all[13], &all[14]})
    for (const Shape& s : {Shape{128, 160, 640}, Shape{33, 65, 127}, Shape{5, 7, 0}, Shape{100, 72, 72}, Shape{1, 19, 33}})
      for (const bool bias : {false, true})
        for (const bool accumulate : {false, true})
          add({.a = *k, .b = all[13], .mnk = s, .result = DType::f16, .bias = bias, .accumulate = accumulate});
  for (const OperandKind* a : {&all[4], &all[5], &all[6], &all[8], &all[10], &all[12]})
    for (const OperandKind* b : {&all[4], &all[6], &all[8], &all[11], &all[12]}) {
      const Try t{.a = *a, .b = *b, .mnk = {128, 128, 16384}};
      cases.push_back({format("gemm long {} x {}", a->name, b->name), [t](Side& side) { run_long(side, t); }});
    }
  // The promoted kernels': sizes that are no multiples of 16, both operands e5m2.
  for (const OperandKind* a : {&all[8], &all[9], &all[10]})
    for (const OperandKind* b : {&all[8], &all[9], &all[10], &all[11]})
      for (const Shape& s : {Shape{1, 4, 16}, Shape{5, 132, 128}, Shape{193, 260, 400}, Shape{1000, 332, 2064}}) {
        const bool odd = s[0] % 2 == 1;
        add({.a = *a, .b = *b, .mnk = s, .result = odd ? DType::f32 : DType::bf16, .bias = odd, .accumulate = true});
        add({.a = *a, .b = *b, .mnk = s, .result = odd ? DType::bf16 : DType::f32, .bias = !odd, .values = Values::positive});
      }
  for (const OperandKind* a : {&all[9], &all[10]})
    for (const OperandKind* b : {&all[9], &all[10], &all[11]}) {
      const Try t{.a = *a, .b = *b, .mnk = {300, 260, 16384}};
      cases.push_back({format("gemm long promoted {} x {}", a->name, b->name), [t](Side& side) { run_long(side, t); }});
    }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Shape& s : {Shape{0, 8}, Shape{1, 1}, Shape{5, 7}, Shape{300, 129}, Shape{2000, 896}})
      cases.push_back({format("add_column_sums {} {}", dtype, s), [=](Side& side) {
                         const std::vector<float> x = testing::gaussian(std::size_t(s.count()), 1);
                         std::vector<double> size(std::size_t(s[1]), 1);
                         for (std::size_t i = 0; i < x.size(); ++i) size[i % size.size()] += 1.01 * std::fabs(double(x[i]));
                         const Tensor db = side.gaussian({s[1]}, 2);
                         for (std::int64_t i = 0; i < s[1]; ++i) size[std::size_t(i)] += 6;
                         ops::add_column_sums(side.stream(), side.from(x, s, dtype), db);
                         side.result("db", db, {.bound = [=](std::int64_t i) {
                                       return 2 * dot_bound(double(s[0]) + 1, unit_f32, size[std::size_t(i)]);
                                     }});
                       }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
