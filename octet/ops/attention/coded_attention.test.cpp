#include "octet/ops/attention/coded_attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "octet/numerics/scale.hpp"
#include "octet/ops/attention/attention.testing.hpp"
#include "tests/testing/tensors.hpp"

// Attention in 8 bits against attention of the decoded codes in double precision, within bounds of what codes of probabilities and of
// their gradients, and those of the results, may change; then the error of each mode against attention of the values.

namespace octet::ops {
namespace {

using namespace attention_reference;
using testing::gaussian;

// Half the distance of neighbouring codes: relative to a normal value, and of the smallest ones.
struct HalfStep {
  double relative, least;
};
HalfStep half_step(DType format) {
  return format == DType::e4m3 ? HalfStep{0x1p-4, E4M3::min_subnormal / 2} : HalfStep{0x1p-3, E5M2::min_subnormal / 2};
}
double code_error(double value, DType format, double scale) {
  const HalfStep h = half_step(format);
  return 1.01 * std::max(h.relative * std::fabs(value), h.least / scale);
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.count(); ++i) out.push_back(double(value_at(t, i)));
  return out;
}

// Attention of given values on a stream; every operand has the scale of its own maximum, as after a step of the same values.
struct Attended {
  Stream stream{Device::cpu};
  Case c;
  DType gradients;
  AttentionSpecs specs;
  QuantizeHealth health[10];
  Tensor qkv, d_o, starts;  // values, bf16
  Tensor codes, o_codes, do_codes, dqkv_codes, lse;
  Tensor o, dqkv;  // f32

  Attended(const Case& c, DType gradients, const std::vector<float>& x, const std::vector<float>& d) : c(c), gradients(gradients) {
    const Shape wide{c.tokens(), c.heads.columns()}, narrow{c.tokens(), c.heads.out_columns()};
    qkv = testing::tensor_of(stream, x, wide, DType::bf16), d_o = testing::tensor_of(stream, d, narrow, DType::bf16);
    codes = stream.empty(wide, DType::e4m3), o_codes = stream.empty(narrow, DType::e4m3), do_codes = stream.empty(narrow, gradients);
    dqkv_codes = stream.empty(wide, gradients), lse = stream.empty({c.heads.heads, c.tokens()}, DType::f32);
    o = stream.empty(narrow, DType::f32), dqkv = stream.empty(wide, DType::f32);
    if (!c.starts.empty()) {
      starts = stream.empty({c.tokens()}, DType::i32);
      std::copy(c.starts.begin(), c.starts.end(), starts.as<std::int32_t>());
    }
    QuantizeSpec* const all[] = {&specs.q, &specs.k, &specs.v, &specs.p, &specs.o, &specs.d_o, &specs.dp, &specs.dq, &specs.dk, &specs.dv};
    for (int i = 0; i < 10; ++i) {
      QuantizeSpec& s = *all[i];
      s.format = i < 5 ? DType::e4m3 : gradients, s.health = &health[i];
      s.scale = stream.empty({1}, DType::f32), s.descale = stream.empty({1}, DType::f32), s.amax = stream.zeros({1}, DType::f32);
      *s.scale.f32() = *s.descale.f32() = 1;
    }
    for (int pass = 0; pass < 3; ++pass) {
      for (int i = 0; i < 10; ++i) {
        QuantizeSpec& s = *all[i];
        *s.scale.f32() = scale_from_history(*s.amax.f32(), format_max(s.format), *s.scale.f32());
        *s.descale.f32() = 1 / *s.scale.f32(), *s.amax.f32() = 0, health[i] = {};
      }
      forward(), backward();
    }
  }

  void forward() {
    encode_columns(stream, qkv, qkv_groups(c.heads, specs), codes);
    coded_attention_forward(stream, {.qkv = codes, .o = o_codes, .lse = lse, .heads = c.heads, .specs = specs, .document_starts = starts});
    decode_columns(stream, o_codes, o_groups(c.heads, specs), o);
  }
  void backward() {
    encode_columns(stream, d_o, d_o_groups(c.heads, specs), do_codes);
    AttentionSpecs again = specs;  // forward has counted
    again.p.health = nullptr, again.p.amax = {};
    coded_attention_backward(stream, {.d_o = do_codes,
                                      .o = o_codes,
                                      .qkv = codes,
                                      .lse = lse,
                                      .dqkv = dqkv_codes,
                                      .heads = c.heads,
                                      .specs = again,
                                      .document_starts = starts});
    decode_columns(stream, dqkv_codes, dqkv_groups(c.heads, specs), dqkv);
  }

  std::vector<double> decoded(const Tensor& codes, const ColumnGroups& groups) {
    const Tensor x = stream.empty(codes.shape, DType::f32);
    decode_columns(stream, codes, groups, x);
    return values_of(x);
  }
};

Attended random_run(const Case& c, DType gradients) {
  return Attended(c, gradients, gaussian(std::size_t(c.tokens() * c.heads.columns()), 1),
                  gaussian(std::size_t(c.tokens() * c.heads.out_columns()), 2));
}

const std::vector<Case> cases = {{1, {1, 1, 16, 1}},
                                 {2, {2, 1, 64, 7}},
                                 {1, {4, 2, 32, 97}},
                                 {2, {2, 2, 128, 50}},
                                 {1, {2, 2, 48, 60, {}, 32, 1.5f}},
                                 with_documents({2, {2, 1, 16, 150}}, 9)};

// |o - reference| of every element.
std::vector<double> forward_bound(const Attended& r, const std::vector<double>& qkv, const Forward& f) {
  std::vector<double> bound(f.o.size());
  const double scale = scale_of(r.c.heads), of_p = double(*r.specs.p.scale.f32());
  each_head(r.c, [&](const Head& h) {
    for (std::int64_t i = 0; i < r.c.heads.sequence; ++i) {
      const auto s = [&](std::int64_t j) { return product(r.c.heads.head_dim, qkv, h.query(i), qkv, h.key(j)).sum * scale; };
      double most = -INFINITY;
      for (std::int64_t j = h.first_key(i); j <= i; ++j) most = std::max(most, s(j));
      const double sum = std::exp(f.lse[h.lse(i)] - most);
      for (std::int64_t x = 0; x < r.c.heads.value_dim(); ++x) {
        const std::size_t at = h.out(i) + std::size_t(x);
        double error = 1.1 * f.o_bound[at];
        for (std::int64_t j = h.first_key(i); j <= i; ++j)
          error += code_error(std::exp(s(j) - most), DType::e4m3, of_p) / sum * std::fabs(qkv[h.value(j) + std::size_t(x)]);
        bound[at] = error + code_error(std::fabs(f.o[at]) + error, DType::e4m3, double(*r.specs.o.scale.f32()));
      }
    }
  });
  return bound;
}

// And of its gradients.
std::vector<double> backward_bound(const Attended& r, const std::vector<double>& qkv, const std::vector<double>& d_o,
                                   const std::vector<double>& o, const std::vector<double>& lse, const Backward& b) {
  std::vector<double> bound = b.bound;
  const std::int64_t d = r.c.heads.head_dim, dv = r.c.heads.value_dim();
  const double scale = scale_of(r.c.heads), of_p = double(*r.specs.p.scale.f32()), of_dp = double(*r.specs.dp.scale.f32());
  each_head(r.c, [&](const Head& h) {
    for (std::int64_t i = 0; i < r.c.heads.sequence; ++i) {
      const double delta = product(dv, d_o, h.out(i), o, h.out(i)).sum;
      for (std::int64_t j = h.first_key(i); j <= i; ++j) {
        const double p = std::exp(product(d, qkv, h.query(i), qkv, h.key(j)).sum * scale - lse[h.lse(i)]);
        const double dp = p * (product(dv, d_o, h.out(i), qkv, h.value(j)).sum - delta) * scale;
        const double p_error = code_error(p, DType::e4m3, of_p), dp_error = code_error(dp, r.gradients, of_dp);
        for (std::size_t at = 0; at < std::size_t(dv); ++at) bound[h.value(j) + at] += p_error * std::fabs(d_o[h.out(i) + at]);
        for (std::size_t at = 0; at < std::size_t(d); ++at) {
          bound[h.query(i) + at] += dp_error * std::fabs(qkv[h.key(j) + at]);
          bound[h.key(j) + at] += dp_error * std::fabs(qkv[h.query(i) + at]);
        }
      }
    }
  });
  const double scales[] = {double(*r.specs.dq.scale.f32()), double(*r.specs.dk.scale.f32()), double(*r.specs.dv.scale.f32())};
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const std::int64_t column = std::int64_t(i) % r.c.heads.columns();
    const int part = column < r.c.heads.key_column(0) ? 0 : column < r.c.heads.value_column(0) ? 1 : 2;
    bound[i] = 1.1 * bound[i] + code_error(std::fabs(b.dqkv[i]) + bound[i], r.gradients, scales[part]);
  }
  return bound;
}

TEST(CodedAttention, OutputAndGradientsAreThoseOfTheCodesWithinTheirRounding) {
  for (const Case& c : cases)
    for (const DType gradients : {DType::e5m2, DType::e4m3}) {
      Attended r = random_run(c, gradients);
      const auto x = r.decoded(r.codes, qkv_groups(c.heads, r.specs)), g = r.decoded(r.do_codes, d_o_groups(c.heads, r.specs)),
                 o = r.decoded(r.o_codes, o_groups(c.heads, r.specs)), lse = values_of(r.lse);
      const Forward f = attention_reference::forward(c, x);
      const auto of_o = forward_bound(r, x, f);
      for (std::size_t i = 0; i < f.o.size(); ++i)
        ASSERT_LE(std::fabs(o[i] - f.o[i]), of_o[i]) << c.text() << " o " << i << ": " << o[i] << ", wanted " << f.o[i];
      for (std::size_t i = 0; i < lse.size(); ++i) ASSERT_LE(std::fabs(lse[i] - f.lse[i]), f.lse_bound[i]) << c.text();
      const Backward b = attention_reference::backward(c, x, g, o, lse);
      const auto of_dqkv = backward_bound(r, x, g, o, lse, b);
      const auto dqkv = values_of(r.dqkv);
      for (std::size_t i = 0; i < dqkv.size(); ++i)
        ASSERT_LE(std::fabs(dqkv[i] - b.dqkv[i]), of_dqkv[i]) << c.text() << " dqkv " << i << ": " << dqkv[i] << ", wanted " << b.dqkv[i];
    }
}

TEST(CodedAttention, MaximaAndHealthOfEveryOperandAreMeasured) {
  const Case c{2, {2, 1, 32, 40}};
  const Attended r = random_run(c, DType::e5m2);
  EXPECT_EQ(*r.specs.p.amax.f32(), 1) << "the largest exponential of a row";
  const std::int64_t scores = c.batch * c.heads.heads * c.heads.sequence * (c.heads.sequence + 1) / 2, tokens = c.tokens();
  const std::int64_t counts[] = {tokens * 64, tokens * 32, tokens * 32, scores,      tokens * 64,
                                 tokens * 64, scores,      tokens * 64, tokens * 32, tokens * 32};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(r.health[i].values, counts[i]) << i;
    EXPECT_EQ(r.health[i].nonfinite, 0) << i;
    EXPECT_GT(r.health[i].scale_max, 0) << i;
  }
  for (const QuantizeSpec* s : {&r.specs.q, &r.specs.o, &r.specs.d_o, &r.specs.dp, &r.specs.dq, &r.specs.dk, &r.specs.dv}) {
    const double reach = double(*s->amax.f32()) * double(*s->scale.f32()) / double(format_max(s->format));
    EXPECT_GT(reach, 0.9) << "the scale of the pass before fits this one";
    EXPECT_LT(reach, 1.1);
  }
}

// Root mean square of errors over that of the values, of columns [first, first + n) of rows of `row`.
double share(const std::vector<double>& got, const std::vector<double>& wanted, std::size_t row, std::size_t first, std::size_t n) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i % row < first || i % row >= first + n) continue;
    error += (got[i] - wanted[i]) * (got[i] - wanted[i]), size += wanted[i] * wanted[i];
  }
  return std::sqrt(error / size);
}

struct Errors {
  double o, dq, dk, dv;
};
// Against attention of the values themselves.
Errors errors_of(const Case& c, const std::vector<float>& x, const std::vector<float>& d, DType gradients, bool subtract_mean) {
  std::vector<float> shifted = x;
  const std::int64_t columns = c.heads.columns();
  if (subtract_mean)
    for (std::int64_t s = 0; s < c.batch; ++s)
      for (std::int64_t k = c.heads.key_column(0); k < c.heads.value_column(0); ++k) {
        double mean = 0;
        for (std::int64_t t = 0; t < c.heads.sequence; ++t) mean += double(x[std::size_t((s * c.heads.sequence + t) * columns + k)]);
        for (std::int64_t t = 0; t < c.heads.sequence; ++t)
          shifted[std::size_t((s * c.heads.sequence + t) * columns + k)] -= float(mean / double(c.heads.sequence));
      }
  Attended r(c, gradients, shifted, d);
  const std::vector<double> exact(x.begin(), x.end()), g(d.begin(), d.end());
  const Forward f = attention_reference::forward(c, exact);
  const Backward b = attention_reference::backward(c, exact, g, f.o, f.lse);
  const auto o = values_of(r.o), dqkv = values_of(r.dqkv);
  const std::size_t row = std::size_t(columns), q = std::size_t(c.heads.key_column(0)), v = std::size_t(c.heads.value_column(0));
  return {share(o, f.o, q, 0, q), share(dqkv, b.dqkv, row, 0, q), share(dqkv, b.dqkv, row, q, v - q), share(dqkv, b.dqkv, row, v, row - v)};
}

std::vector<float> with_keys(const Case& c, std::vector<float> x, const std::function<float(std::int64_t, float)>& of) {
  const std::int64_t columns = c.heads.columns();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t column = std::int64_t(i) % columns;
    if (column >= c.heads.key_column(0) && column < c.heads.value_column(0)) x[i] = of(column % c.heads.head_dim, x[i]);
  }
  return x;
}

TEST(CodedAttention, ErrorsOfModesOnNormalShiftedAndOutlyingKeys) {
  const Case c{1, {2, 1, 128, 256}};
  const auto x = gaussian(std::size_t(c.tokens() * c.heads.columns()), 1);
  const auto d = gaussian(std::size_t(c.tokens() * c.heads.out_columns()), 2);
  const auto shifted = with_keys(c, x, [](std::int64_t column, float k) { return k + (column % 3 == 0 ? 6.0f : -2.0f); });
  const auto outlying = with_keys(c, x, [](std::int64_t column, float k) { return column == 5 ? 40 * k : k; });
  const auto row = [&](const char* name, const std::vector<float>& values, DType gradients, bool subtract) {
    const Errors e = errors_of(c, values, d, gradients, subtract);
    std::printf("%-26s %s: o %.4f dq %.4f dk %.4f dv %.4f\n", name, gradients == DType::e4m3 ? "e4m3" : "e5m2", e.o, e.dq, e.dk, e.dv);
    return e;
  };
  const Errors normal = row("normal", x, DType::e4m3, false), wide = row("normal", x, DType::e5m2, false);
  const Errors with_mean = row("keys with a mean", shifted, DType::e4m3, false),
               without = row("its mean subtracted", shifted, DType::e4m3, true);
  row("an outlying channel", outlying, DType::e4m3, false);
  EXPECT_LT(normal.o, 0.06) << "E4M3 has errors of 2.6 % on average: of q, k, v, p and o";
  EXPECT_LT(normal.dq, wide.dq);
  EXPECT_LT(without.o, with_mean.o / 2) << "the mean of keys changes no probability, and takes bits of the codes";
  EXPECT_LT(without.dq, with_mean.dq);
}

TEST(CodedAttention, WhatATargetLacksIsNamed) {
  const QkvShape h{2, 1, 64, 8}, wide{2, 1, 128, 8};
  const Target cpu, gpu{.device = Device::cuda}, exact{.device = Device::cuda, .deterministic = true},
      next{.device = Device::cuda, .generation = 10};
  const auto of = [](const Target& t, const QkvShape& s, bool documents = false, CodedPass pass = CodedPass::backward) {
    return coded_attention_obstacle(t, s, documents, pass);
  };
  EXPECT_EQ(of(cpu, h, true), "");
  EXPECT_EQ(of(cpu, {2, 1, 24, 8}), "heads of 24 columns are not a multiple of 16");
  EXPECT_EQ(of(cpu, {2, 1, 64, 8, {16, 0, 12}}), "parts of sequences (ranks.context) have no attention in 8 bits");
  EXPECT_EQ(of(gpu, h), "heads have 64 columns, and on a GPU cuDNN has kernels for 128");
  EXPECT_EQ(of(gpu, wide), "");
  EXPECT_EQ(of(cpu, {2, 2, 192, 8, {}, 128}), "");
  EXPECT_TRUE(of(gpu, {2, 2, 192, 8, {}, 128}).starts_with("values have another width than keys")) << of(gpu, {2, 2, 192, 8, {}, 128});
  EXPECT_EQ(of(gpu, wide, true), "on a GPU cuDNN's kernels of 8 bits do not mask documents");
  EXPECT_EQ(of(next, wide), "this GPU is of generation 10, and cuDNN's kernels are used on Hopper alone");
  EXPECT_EQ(of(exact, wide), "on a GPU cuDNN adds the gradient of queries in no fixed order");
  EXPECT_EQ(of(exact, wide, false, CodedPass::forward), "");
}

TEST(CodedAttention, ADryRunCountsItsProductsAsThoseOfEightBits) {
  Stream stream(Device::null, Target{.device = Device::cuda});
  const QkvShape h{8, 2, 128, 512};
  AttentionSpecs s;
  for (QuantizeSpec* spec : {&s.q, &s.k, &s.v, &s.p, &s.o})
    spec->format = DType::e4m3, spec->scale = stream.empty({1}, DType::f32), spec->descale = stream.empty({1}, DType::f32);
  const Tensor qkv = stream.empty({1024, h.columns()}, DType::e4m3), o = stream.empty({1024, 1024}, DType::e4m3),
               lse = stream.empty({8, 1024}, DType::f32);
  coded_attention_forward(stream, {.qkv = qkv, .o = o, .lse = lse, .heads = h, .specs = s});
  EXPECT_EQ(stream.work().fp8_flops, 2.0 * 1024 * 512 * 8 * 128);
  EXPECT_EQ(stream.work().gemm_flops, stream.work().fp8_flops);
}

}  // namespace
}  // namespace octet::ops
