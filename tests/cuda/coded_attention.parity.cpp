#include "octet/ops/attention/coded_attention.hpp"
#include "octet/ops/attention/attention.hpp"
#include "octet/ops/rope/rope_codes.hpp"
#include "tests/cuda/parity.hpp"

// Codes of columns, with and without rotary positions, have the same bits. Attention of codes by cuDNN differs from the CPU's emulation
// where a probability is encoded under the maximum so far, and where sums in another order move a result to the next code: by codes of
// its operands and of itself, 2^-4 of a value in E4M3 and 2^-3 in E5M2 on each side. The bounds are shares of the largest result. A maximum
// of gradients is that of sums whose operands have a code on each side.

namespace octet::parity {
namespace {

// Scales that fit normal values.
struct Scaled {
  ops::AttentionSpecs specs;
  std::vector<std::pair<std::string, Tensor>> maxima;

  Scaled(Side& side, DType gradients) {
    const auto with = [&](const char* name, DType format, float largest) {
      ops::QuantizeSpec s;
      const float scale = format_max(format) / largest;
      s.format = format, s.scale = side.from({scale}, {1}), s.descale = side.from({1 / scale}, {1}), s.amax = side.from({0}, {1});
      maxima.emplace_back(name, s.amax);
      return s;
    };
    specs.q = with("q", DType::e4m3, 6), specs.k = with("k", DType::e4m3, 6), specs.v = with("v", DType::e4m3, 6);
    specs.p = with("p", DType::e4m3, 1), specs.o = with("o", DType::e4m3, 6);
    specs.d_o = with("do", gradients, 6), specs.dp = with("dp", gradients, 2), specs.dq = with("dq", gradients, 8);
    specs.dk = with("dk", gradients, 16), specs.dv = with("dv", gradients, 16);
  }
};

void run_columns(Side& side, DType values, DType format) {
  Scaled scaled(side, format);
  ops::ColumnGroups groups{{{96, scaled.specs.dq}, {32, scaled.specs.dk}, {16, scaled.specs.dv}}};
  const Shape shape{77, 144};
  const Tensor x = side.gaussian(shape, 1, values), codes = side.poisoned(shape, format), back = side.poisoned(shape, values),
               maxima = side.poisoned({3}, DType::f32);
  ops::column_maxima(side.stream(), x, groups, maxima);
  ops::encode_columns(side.stream(), x, groups, codes), ops::decode_columns(side.stream(), codes, groups, back);
  side.result("maxima", maxima, same_bits()), side.result("codes", codes, same_bits()), side.result("values", back, same_bits());
  for (int i = 7; i < 10; ++i)
    side.result("maximum of " + scaled.maxima[std::size_t(i)].first, scaled.maxima[std::size_t(i)].second, same_bits());
}

void run_rope(Side& side, const ops::QkvShape& heads) {
  Scaled scaled(side, DType::e5m2);
  const Shape shape{3 * heads.sequence, heads.columns()};
  const auto table = ops::rope_table(side.stream(), heads.sequence, heads.head_dim, 10000);
  const auto groups = ops::qkv_groups(heads, scaled.specs);
  const Tensor qkv = side.gaussian(shape, 1, DType::bf16), measured = side.gaussian(shape, 1, DType::bf16),
               codes = side.poisoned(shape, DType::e4m3), maxima = side.poisoned({3}, DType::f32);
  ops::rope_codes(side.stream(), {.rope = {.qkv = qkv, .heads = heads, .table = table}, .groups = groups, .codes = codes});
  ops::rope_maxima(side.stream(), {.qkv = measured, .heads = heads, .table = table}, groups, maxima);
  side.result("codes", codes, same_bits()), side.result("values", measured, same_bits()), side.result("maxima", maxima, same_bits());
  for (int i = 0; i < 3; ++i)
    side.result("maximum of " + scaled.maxima[std::size_t(i)].first, scaled.maxima[std::size_t(i)].second, same_bits());
}

void run_attention(Side& side, std::int64_t batch, const ops::QkvShape& heads, DType gradients) {
  Scaled scaled(side, gradients);
  Stream& stream = side.stream();
  const Shape wide{batch * heads.sequence, heads.columns()}, narrow{wide[0], heads.heads * heads.head_dim};
  const Tensor qkv = side.gaussian(wide, 1, DType::bf16), d_o = side.gaussian(narrow, 2, DType::bf16);
  const Tensor codes = side.poisoned(wide, DType::e4m3), o_codes = side.poisoned(narrow, DType::e4m3),
               do_codes = side.poisoned(narrow, gradients), gradient = side.poisoned(wide, gradients),
               lse = side.poisoned({heads.heads, wide[0]}, DType::f32), o = side.poisoned(narrow, DType::f32),
               dqkv = side.poisoned(wide, DType::f32);
  ops::encode_columns(stream, qkv, ops::qkv_groups(heads, scaled.specs), codes);
  ops::encode_columns(stream, d_o, ops::d_o_groups(heads, scaled.specs), do_codes);
  ops::coded_attention_forward(stream, {.qkv = codes, .o = o_codes, .lse = lse, .heads = heads, .specs = scaled.specs});
  ops::decode_columns(stream, o_codes, ops::o_groups(heads, scaled.specs), o);
  ops::coded_attention_backward(
      stream, {.d_o = do_codes, .o = o_codes, .qkv = codes, .lse = lse, .dqkv = gradient, .heads = heads, .specs = scaled.specs});
  ops::decode_columns(stream, gradient, ops::dqkv_groups(heads, scaled.specs), dqkv);
  side.result("o", o, within_share_of_largest(0x1p-4)), side.result("dqkv", dqkv, within_share_of_largest(0x1p-3));
  for (const auto& [name, amax] : scaled.maxima) {
    const bool of_sums = name == "dp" || name == "dq" || name == "dk" || name == "dv";
    side.result("maximum of " + name, amax, within_share_of_largest(of_sums ? 0x1p-3 : 0x1p-4));
  }
}

std::vector<Case> make() {
  std::vector<Case> cases;
  for (const DType values : {DType::f32, DType::bf16})
    for (const DType code : {DType::e4m3, DType::e5m2})
      cases.push_back({format("codes of columns of {}, {}", values, code), [=](Side& side) { run_columns(side, values, code); }});
  for (const ops::QkvShape& heads : {ops::QkvShape{4, 2, 16, 33}, {14, 2, 64, 75}, {3, 1, 128, 50}})
    cases.push_back({format("codes of rope, {} heads of {}", heads.heads, heads.head_dim), [=](Side& side) { run_rope(side, heads); }});
  if (!ops::attention_library().starts_with("cuDNN")) return cases;
  for (const DType gradients : {DType::e4m3, DType::e5m2})
    for (const auto& [batch, heads] :
         {std::pair<std::int64_t, ops::QkvShape>{2, {4, 2, 128, 512}}, {1, {4, 4, 128, 1000}}, {3, {2, 1, 128, 256}}})
      cases.push_back({format("attention in 8 bits, gradients {}, {} sequences of {}", gradients, batch, heads.sequence),
                       [=](Side& side) { run_attention(side, batch, heads, gradients); }});
  return cases;
}
const Cases registered(make);

}  // namespace
}  // namespace octet::parity
