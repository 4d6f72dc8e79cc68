#include "octet/ops/attention/attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "octet/ops/attention/attention.kernels.hpp"
#include "octet/ops/attention/attention.testing.hpp"
#include "octet/ops/columns/columns.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using namespace attention_reference;
using testing::dot_bound, testing::gaussian, testing::unit_f32;

// S of one token, odd, one more than a block, several blocks with a rest; d of a register, between registers, odd; groups of 1, 2 and 7.
const std::vector<Case> cases = {
    {1, {1, 1, 16, 1}},
    {2, {2, 1, 64, 7}},
    {1, {7, 1, 16, 49}},
    {3, {2, 2, 80, 33}},
    {1, {2, 1, 64, 97}},
    {2, {2, 1, 128, 50}},
    {1, {4, 2, 5, 19}},
    {0, {2, 1, 16, 8}},
    {2, {2, 1, 24, 50, {}, 16, 1.5f}},
    {1, {2, 2, 16, 49, {}, 40, 0.5f}},
    with_documents({2, {2, 1, 16, 150}}, 9),
    with_documents({3, {4, 2, 64, 49}}, 70),
    with_documents({1, {1, 1, 5, 200}}, 1),
};
const std::vector<DType> dtypes = {DType::f32, DType::bf16, DType::f16};
double unit_of(DType t) { return std::max(testing::rounding_to(t).unit, unit_f32); }

using ForwardKernel = void (*)(const AttentionForward&, const Tensor&);
using BackwardKernel = void (*)(const AttentionBackward&, const Tensor&);
std::vector<std::pair<ForwardKernel, BackwardKernel>> kernels() {
  std::vector<std::pair<ForwardKernel, BackwardKernel>> list = {{cpu::v3::attention_forward, cpu::v3::attention_backward}};
  if (cpu::detected_isa() == cpu::Isa::v4) list.push_back({cpu::v4::attention_forward, cpu::v4::attention_backward});
  return list;
}

Tensor tensor(Stream& stream, Shape shape, DType dtype, const std::vector<double>& values) {
  const Tensor t = stream.empty(shape, dtype);
  for (std::int64_t i = 0; i < t.count(); ++i) testing::put(t, i, float(values[std::size_t(i)]));
  return t;
}
std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < t.count(); ++i) out.push_back(value_at(t, i));
  return out;
}
std::vector<double> random(std::int64_t n, std::uint64_t seed, double scale = 1) {
  const auto g = gaussian(std::size_t(n), seed, scale);
  return {g.begin(), g.end()};
}

// One problem on a stream: random inputs, outputs not yet computed.
struct Problem {
  Stream stream{Device::cpu};
  Case c;
  Tensor qkv, o, lse, d_o, dqkv, starts, scratch;
  Problem(const Case& c, DType dtype, double scale = 1) : c(c) {
    const std::int64_t T = c.tokens(), width = c.heads.out_columns(), columns = c.heads.columns();
    qkv = tensor(stream, {T, columns}, dtype, random(T * columns, 1, scale));
    d_o = tensor(stream, {T, width}, dtype, random(T * width, 2));
    if (!c.starts.empty()) {
      starts = stream.empty({T}, DType::i32);
      std::copy(c.starts.begin(), c.starts.end(), starts.as<std::int32_t>());
    }
    o = stream.zeros({T, width}, dtype), dqkv = stream.zeros({T, columns}, dtype), lse = stream.zeros({c.heads.heads, T}, DType::f32);
    const cpu::AttentionBlocks blocks(c.heads);
    scratch = tensor(stream, {cpu::threads(), std::max(blocks.forward_floats(), blocks.backward_floats())}, DType::f32,
                     std::vector<double>(std::size_t(cpu::threads() * std::max(blocks.forward_floats(), blocks.backward_floats())), NAN));
  }
  AttentionForward forward() const { return {.qkv = qkv, .o = o, .lse = lse, .heads = c.heads, .document_starts = starts}; }
  AttentionBackward backward() const {
    return {.d_o = d_o, .o = o, .qkv = qkv, .lse = lse, .dqkv = dqkv, .heads = c.heads, .document_starts = starts};
  }
};

void expect_within(const Tensor& got, const std::vector<double>& want, const std::vector<double>& bound, const std::string& what) {
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(value_at(got, std::int64_t(i)) - want[i]) /
                         (bound[i] + unit_of(got.dtype) * std::abs(want[i]) * 1.01 + testing::rounding_to(got.dtype).smallest + 1e-37);
    if (!(error <= worst)) worst = error, at = i;
  }
  EXPECT_LE(worst, 1.0) << what << " at " << at << ": " << value_at(got, std::int64_t(at)) << " for " << want[at];
}

TEST(Attention, ForwardIsWithinItsBoundOfTheDefinition) {
  for (const auto& c : cases)
    for (const DType dtype : dtypes)
      for (const auto& [kernel, unused] : kernels()) {
        Problem p(c, dtype);
        kernel(p.forward(), p.scratch);
        const Forward want = forward(c, values_of(p.qkv));
        expect_within(p.o, want.o, want.o_bound, "o " + c.text());
        expect_within(p.lse, want.lse, want.lse_bound, "lse " + c.text());
      }
}

TEST(Attention, BackwardIsWithinItsBoundOfTheFormula) {
  for (const auto& c : cases)
    for (const DType dtype : dtypes)
      for (const auto& [unused, kernel] : kernels()) {
        Problem p(c, dtype);
        const Forward exact = forward(c, values_of(p.qkv));
        p.o = tensor(p.stream, p.o.shape, dtype, exact.o), p.lse = tensor(p.stream, p.lse.shape, DType::f32, exact.lse);
        kernel(p.backward(), p.scratch);
        const Backward want = backward(c, values_of(p.qkv), values_of(p.d_o), values_of(p.o), values_of(p.lse));
        expect_within(p.dqkv, want.dqkv, want.bound, "dqkv " + c.text());
      }
}

TEST(Attention, BackwardFormulaIsTheDerivativeOfTheForwardsOwnRows) {
  for (const Case& c : {Case{2, {4, 2, 3, 5}}, Case{2, {4, 2, 3, 5, {}, 2, 1.5f}}, with_documents({2, {4, 2, 3, 7}}, 3)}) {
    const auto qkv = random(c.tokens() * c.heads.columns(), 1), d_o = random(c.tokens() * c.heads.out_columns(), 2);
    const Forward f = forward(c, qkv);
    const Backward want = backward(c, qkv, d_o, f.o, f.lse);
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const double slope = slope_of_forward(c, qkv, d_o, i);
      EXPECT_NEAR(slope, want.dqkv[i], 1e-13 * c.tokens() * c.heads.columns()) << i;
    }
  }
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const Case& c : {Case{1, {6, 3, 16, 150}}, with_documents({1, {6, 3, 16, 150}}, 20)}) {
    const int usual = cpu::threads();
    std::vector<std::vector<double>> o, lse, dqkv;
    for (const int threads : {1, 2, 3, 8}) {
      cpu::set_threads(threads);
      Problem p(c, DType::f32);
      attention_forward(p.stream, p.forward());
      attention_backward(p.stream, p.backward());
      o.push_back(values_of(p.o)), lse.push_back(values_of(p.lse)), dqkv.push_back(values_of(p.dqkv));
    }
    cpu::set_threads(usual);
    for (std::size_t i = 1; i < o.size(); ++i) EXPECT_TRUE(o[i] == o[0] && lse[i] == lse[0] && dqkv[i] == dqkv[0]) << i;
  }
}

TEST(Attention, ReadsNeitherLaterTokensNorOtherSequences) {
  const Case both{2, {2, 1, 16, 60}};
  Problem p(both, DType::f32);
  attention_forward(p.stream, p.forward());
  const auto before = values_of(p.o);
  constexpr std::int64_t token = 51;  // of the first sequence
  for (std::int64_t i = 0; i < both.heads.columns(); ++i) p.qkv.f32()[token * both.heads.columns() + i] += 1;
  attention_forward(p.stream, p.forward());
  const auto after = values_of(p.o);
  const std::int64_t width = both.heads.heads * both.heads.head_dim;
  for (std::int64_t t = 0; t < both.tokens(); ++t) {
    const bool same = std::equal(before.begin() + t * width, before.begin() + (t + 1) * width, after.begin() + t * width);
    EXPECT_EQ(same, t < token || t >= 60) << t;
  }
}

// The block of keys of token 100 begins at 96; its document at 90.
TEST(Attention, ReadsNoTokenOfAnotherDocument) {
  Case c{2, {2, 1, 16, 130}};
  for (std::int64_t t = 0; t < c.tokens(); ++t) c.starts.push_back(t % 130 < 90 ? 0 : t % 130 < 111 ? 90 : 111);
  Problem p(c, DType::f32);
  const auto run = [&] {
    attention_forward(p.stream, p.forward()), attention_backward(p.stream, p.backward());
    return std::pair(values_of(p.o), values_of(p.dqkv));
  };
  const auto before = run();
  constexpr std::int64_t token = 100;
  for (std::int64_t i = 0; i < c.heads.columns(); ++i) p.qkv.f32()[token * c.heads.columns() + i] += 1;
  const auto after = run();
  const std::int64_t width = c.heads.out_columns(), columns = c.heads.columns();
  for (std::int64_t t = 0; t < c.tokens(); ++t) {
    const auto same = [&](const std::vector<double>& a, const std::vector<double>& b, std::int64_t n) {
      return std::equal(a.begin() + t * n, a.begin() + (t + 1) * n, b.begin() + t * n);
    };
    EXPECT_EQ(same(before.first, after.first, width), t < token || t >= 111) << t;
    EXPECT_EQ(same(before.second, after.second, columns), t < 90 || t >= 111) << t;
  }
}

// The rows of a part of each sequence, of a tensor with those of whole ones.
Tensor rows_of_part(Stream& stream, const Tensor& whole, const QkvShape& part) {
  const std::int64_t rows = whole.shape[0] / part.whole() * part.sequence;
  const Shape shape = whole.shape.rank == 1 ? Shape{rows} : Shape{rows, whole.shape[1]};
  const Tensor out = stream.empty(shape, whole.dtype);
  for (std::int64_t t = 0; t < rows; ++t)
    copy(stream, whole.rows(t / part.sequence * part.whole() + part.place(t % part.sequence), 1), out.rows(t, 1));
  return out;
}
// Columns from `first` on.
Tensor columns_of(Stream& stream, const Tensor& x, std::int64_t first, std::int64_t columns) {
  const Tensor out = stream.empty({x.shape[0], columns}, x.dtype);
  copy_columns(stream, {.from = x, .from_column = first, .to = out, .columns = columns});
  return out;
}

// Segments end within blocks and strips; one has a single token; a document begins before its segment, and one within it.
TEST(Attention, OfPartsOfSequencesHasTheBitsOfWholeOnes) {
  for (const Case& c : {Case{2, {4, 2, 16, 200}}, Case{1, {2, 1, 64, 384}}, Case{1, {2, 2, 5, 8}}, Case{1, {2, 1, 24, 200, {}, 16, 1.5f}},
                        with_documents({2, {4, 2, 16, 200}}, 31)})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int members : {2, 4})
        for (const auto& [forward, backward] : kernels()) {
          Problem p(c, dtype);
          forward(p.forward(), p.scratch), backward(p.backward(), p.scratch);
          Stream& s = p.stream;
          const std::int64_t queries = c.heads.heads * c.heads.head_dim, of_keys = c.heads.columns() - queries;
          const Tensor keys = columns_of(s, p.qkv, queries, of_keys), dkeys = s.empty(keys.shape, dtype);
          std::vector<double> sums(std::size_t(keys.count())), size(sums.size());
          for (int m = 0; m < members; ++m) {
            QkvShape part = c.heads;
            part.sequence /= members, part.part = SequencePart::of_member(c.heads.sequence, m, members);
            const auto own = [&](const Tensor& x) { return rows_of_part(s, x, part); };
            const Tensor qkv = own(p.qkv), d_o = own(p.d_o), starts = p.starts ? own(p.starts) : Tensor{};
            const Tensor o = s.zeros(d_o.shape, dtype), dqkv = s.zeros(qkv.shape, dtype),
                         lse = s.zeros({c.heads.heads, qkv.shape[0]}, DType::f32);
            forward({.qkv = qkv, .o = o, .lse = lse, .heads = part, .document_starts = starts, .keys = keys}, p.scratch);
            backward({.d_o = d_o,
                      .o = o,
                      .qkv = qkv,
                      .lse = lse,
                      .dqkv = dqkv,
                      .heads = part,
                      .document_starts = starts,
                      .keys = keys,
                      .dkeys = dkeys},
                     p.scratch);
            EXPECT_EQ(values_of(o), values_of(own(p.o))) << c.text() << " member " << m;
            EXPECT_EQ(values_of(columns_of(s, dqkv, 0, queries)), values_of(columns_of(s, own(p.dqkv), 0, queries))) << c.text();
            for (std::size_t i = 0; i < sums.size(); ++i) {
              const double x = value_at(dkeys, std::int64_t(i));
              sums[i] += x, size[i] += std::abs(x);
            }
          }
          const Tensor want = columns_of(s, p.dqkv, queries, of_keys);
          // Each partial sum is off by its terms' roundings in FP32, and rounded to the dtype, as the whole one is.
          for (std::size_t i = 0; i < sums.size(); ++i) {
            const double bound = (unit_of(dtype) + 2 * double(c.heads.sequence) * unit_f32) * (size[i] + 16);
            EXPECT_NEAR(sums[i], value_at(want, std::int64_t(i)), 2 * bound) << c.text();
          }
        }
}

TEST(Attention, SurvivesScoresThatOverflowTheExponential) {
  const Case c{1, {2, 1, 64, 70}};
  Problem p(c, DType::f32, 1e4);  // scores of 1e9
  attention_forward(p.stream, p.forward());
  attention_backward(p.stream, p.backward());
  for (const Tensor& t : {p.o, p.lse, p.dqkv})
    for (const double x : values_of(t)) ASSERT_TRUE(std::isfinite(x));
  for (int head = 0; head < 2; ++head)  // the first token sees itself alone
    for (int i = 0; i < 64; ++i) EXPECT_EQ(p.o.f32()[head * 64 + i], p.qkv.f32()[c.heads.value_column(0) + i]);
}

TEST(Attention, CarriesNanToEveryTokenThatReadsIt) {
  const Case c{2, {2, 2, 16, 50}};
  for (const std::int64_t column : {c.heads.query_column(1), c.heads.key_column(1), c.heads.value_column(1)}) {
    Problem p(c, DType::f32);
    constexpr std::int64_t token = 20;
    p.qkv.f32()[token * c.heads.columns() + column] = NAN;
    attention_forward(p.stream, p.forward());
    attention_backward(p.stream, p.backward());
    const bool query = column == c.heads.query_column(1);
    for (std::int64_t t = 0; t < c.tokens(); ++t) {
      EXPECT_EQ(std::isnan(p.o.f32()[t * 32]), false) << "head 0, token " << t;
      const bool reads = query ? t == token : t >= token && t < 50, may = t >= token - 6 && t < 50;  // 6: rows of one strip share zeros
      EXPECT_TRUE(reads ? std::isnan(p.o.f32()[t * 32 + 16]) : may || !std::isnan(p.o.f32()[t * 32 + 16])) << t;
    }
    EXPECT_TRUE(std::isnan(p.dqkv.f32()[token * c.heads.columns() + c.heads.key_column(1) + 1])) << column;
  }
}

TEST(Attention, ADryRunNeedsTheSameMemoryAndCountsTheSameWork) {
  const QkvShape heads{4, 2, 64, 256};
  Work work[2];
  std::size_t peak[2];
  for (const Device device : {Device::cpu, Device::null}) {
    Stream stream(device);
    const Tensor qkv = stream.empty({512, heads.columns()}, DType::bf16), dqkv = stream.empty({512, heads.columns()}, DType::bf16);
    const Tensor o = stream.empty({512, 256}, DType::bf16), lse = stream.empty({4, 512}, DType::f32);
    if (device == Device::cpu)
      for (const Tensor& t : {qkv, o, lse}) clear(stream, t);
    attention_forward(stream, {.qkv = qkv, .o = o, .lse = lse, .heads = heads});
    attention_backward(stream, {.d_o = o, .o = o, .qkv = qkv, .lse = lse, .dqkv = dqkv, .heads = heads});
    work[device == Device::null] = stream.work(), peak[device == Device::null] = stream.arena().peak().total;
  }
  EXPECT_EQ(peak[0], peak[1]);
  EXPECT_EQ(work[0].flops, work[1].flops);
  EXPECT_EQ(work[0].flops, 3.5 * 2 * 2 * 2 * 4 * 256.0 * 256 / 2 * 64);
  EXPECT_EQ(work[0].gemm_flops, 0);
}

TEST(Attention, RefusesWrongShapes) {
  Stream stream(Device::null);
  const auto f32 = [&](Shape s) { return stream.empty(s, DType::f32); };
  const QkvShape heads{4, 2, 16, 8};
  EXPECT_THROW(attention_forward(stream, {.qkv = f32({16, 127}), .o = f32({16, 64}), .lse = f32({4, 16}), .heads = heads}), ContractError);
  EXPECT_THROW(attention_forward(stream, {.qkv = f32({15, 128}), .o = f32({15, 64}), .lse = f32({4, 15}), .heads = heads}), ContractError);
  EXPECT_THROW(attention_forward(stream, {.qkv = f32({16, 128}), .o = f32({16, 32}), .lse = f32({4, 16}), .heads = heads}), ContractError);
  EXPECT_THROW(attention_forward(stream, {.qkv = f32({16, 128}), .o = f32({16, 64}), .lse = f32({16, 4}), .heads = heads}), ContractError);
  EXPECT_THROW(attention_forward(stream, {.qkv = f32({16, 128}), .o = f32({16, 64}), .lse = f32({4, 16}), .heads = {4, 3, 16, 8}}),
               ContractError);
  const auto starts = [&](Stream& s, std::vector<std::int32_t> values) {
    const Tensor t = s.empty({std::int64_t(values.size())}, DType::i32);
    if (s.device() == Device::cpu) std::copy(values.begin(), values.end(), t.as<std::int32_t>());
    return t;
  };
  QkvShape part = heads;  // rows 4 to 8 and 24 to 28 of 32 tokens
  part.part = {32, 4, 24};
  const auto apart = [&](const QkvShape& of, const Tensor& keys) {
    attention_forward(stream, {.qkv = f32({16, 128}), .o = f32({16, 64}), .lse = f32({4, 16}), .heads = of, .keys = keys});
  };
  EXPECT_NO_THROW(apart(part, f32({64, 64})));
  EXPECT_THROW(apart(part, {}), ContractError);
  EXPECT_THROW(apart(part, f32({16, 64})), ContractError);
  EXPECT_THROW(apart(heads, f32({16, 64})), ContractError);
  part.part = {32, 4, 29};
  EXPECT_THROW(apart(part, f32({64, 64})), ContractError);
  Stream cpu(Device::cpu);
  const auto with = [&](Stream& s, const Tensor& documents) {
    const auto zeros = [&](Shape shape) { return s.zeros(shape, DType::f32); };
    attention_forward(
        s, {.qkv = zeros({4, 6}), .o = zeros({4, 2}), .lse = zeros({1, 4}), .heads = {1, 1, 2, 4}, .document_starts = documents});
  };
  EXPECT_THROW(with(stream, starts(stream, {0, 0, 0})), ContractError);
  EXPECT_THROW(with(stream, f32({4})), ContractError);
  EXPECT_NO_THROW(with(cpu, starts(cpu, {0, 0, 2, 3})));
  for (const auto& bad : {std::vector<std::int32_t>{1, 1, 1, 1}, {0, 2, 2, 2}, {0, 1, 0, 0}, {-1, 0, 0, 0}})
    EXPECT_THROW(with(cpu, starts(cpu, bad)), ContractError);
}

}  // namespace
}  // namespace octet::ops
