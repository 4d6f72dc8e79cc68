#include "octet/ops/latent_heads/latent_heads.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/latent_heads/latent_heads.kernels.hpp"
#include "tests/testing/tensors.hpp"
#include "tests/testing/testing.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;
constexpr double theta = 100, u = testing::unit_f32;

struct Case {
  LatentHeads shape;
  std::int64_t tokens;
  std::int64_t q_first = 0, k_first = 0;  // both are columns of one matrix
};
// One head; keys that are turned as a whole; DeepSeek's widths; halves.
const std::vector<Case> cases = {
    {{{1, 1, 6, 3, {}, 2}, 2}, 3, 0, 6},
    {{{3, 3, 4, 5, {}, 6}, 4}, 10, 5, 0},
    {{{2, 2, 192, 4, {}, 128}, 64}, 8, 0, 390},
    {{{2, 2, 12, 7, {}, 8}, 8, RopePairs::halves}, 14, 0, 24},
};

struct Parts {
  Tensor first, kv, qkv;  // first: columns of queries and of shared keys
  LatentArguments arguments;
  Parts(Stream& s, const Case& c, DType dtype) {
    const LatentHeads& h = c.shape;
    const std::int64_t queries = h.heads.heads * h.heads.head_dim, columns = std::max(c.q_first + queries, c.k_first + h.turned) + 2;
    first = gaussian_tensor(s, {c.tokens, columns}, 1, dtype), kv = gaussian_tensor(s, {c.tokens, h.expanded()}, 2, dtype);
    qkv = gaussian_tensor(s, {c.tokens, h.heads.columns()}, 3, dtype);
    arguments = {.q = {first, c.q_first},
                 .kv = kv,
                 .k = {first, c.k_first},
                 .qkv = qkv,
                 .shape = h,
                 .table = rope_table(s, h.heads.sequence, h.turned, theta)};
  }
};

// Column `column` of a token's fused row, straight from the definition, in double.
double fused(const Case& c, const Parts& p, std::int64_t t, std::int64_t column, std::int64_t place) {
  const QkvShape& s = c.shape.heads;
  const std::int64_t d = s.head_dim, dv = s.value_dim(), r = c.shape.turned, n = d - r, columns = p.first.shape[1];
  const auto q = [&](std::int64_t i) { return double(value_at(p.first, t * columns + c.q_first + i)); };
  const auto k = [&](std::int64_t i) { return double(value_at(p.first, t * columns + c.k_first + i)); };
  const auto kv = [&](std::int64_t head, std::int64_t i) { return double(value_at(p.kv, (t * s.heads + head) * (n + dv) + i)); };
  if (column >= s.value_column(0)) {
    const std::int64_t i = column - s.value_column(0);
    return kv(i / dv, n + i % dv);
  }
  const bool key = column >= s.key_column(0);
  const std::int64_t head = column / d % s.heads, i = column % d - n;
  if (i < 0) return key ? kv(head, n + i) : q(head * d + n + i);
  const bool halves = c.shape.pairs == RopePairs::halves, upper = halves ? i >= r / 2 : i % 2 == 1;
  const std::int64_t pair = halves ? i % (r / 2) : i / 2, other = halves ? (upper ? i - r / 2 : i + r / 2) : i ^ 1;
  const auto x = [&](std::int64_t j) { return key ? k(j) : q(head * d + n + j); };
  const double angle = double(place) * std::pow(theta, -2.0 * double(pair) / double(r));
  return x(i) * std::cos(angle) + (upper ? 1 : -1) * x(other) * std::sin(angle);
}

TEST(LatentHeads, ForwardIsTheDefinition) {
  for (const Case& c : cases)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (auto* const kernel : testing::kernels(cpu::v3::latent_heads_forward, cpu::v4::latent_heads_forward)) {
        Stream s(Device::cpu);
        const Parts p(s, c, dtype);
        kernel(p.arguments);
        const auto [unit, smallest] = testing::rounding_to(dtype);
        for (std::int64_t i = 0; i < p.qkv.count(); ++i) {
          const std::int64_t t = i / p.qkv.shape[1];
          const double want = fused(c, p, t, i % p.qkv.shape[1], t % c.shape.heads.sequence);
          // Two products of factors below 6, with the table's rounding and their own, and their sum; then that to the type.
          ASSERT_NEAR(value_at(p.qkv, i), want, 4 * 12 * u + unit * std::abs(want) * 1.01 + smallest) << i;
        }
      }
}

// Forward is linear: the gradient of an input element is the product of the column that a 1 there gives with dqkv.
TEST(LatentHeads, BackwardIsTheTransposeOfForward) {
  for (const Case& c : {cases[0], cases[1], cases[3]})
    for (auto* const kernel : testing::kernels(cpu::v3::latent_heads_backward, cpu::v4::latent_heads_backward)) {
      Stream s(Device::cpu);
      Parts given(s, c, DType::f32), unit(s, c, DType::f32), got(s, c, DType::f32);
      got.arguments.qkv = given.qkv;
      kernel(got.arguments);
      const auto check = [&](const Tensor& input, const Tensor& gradient, bool used(const Case&, std::int64_t)) {
        for (std::int64_t i = 0; i < input.count(); ++i) {
          if (!used(c, i % input.shape[1])) continue;
          clear(s, unit.first), clear(s, unit.kv);
          input.f32()[i] = 1;
          latent_heads_forward(s, unit.arguments);
          double want = 0, size = 0;
          for (std::int64_t j = 0; j < unit.qkv.count(); ++j) {
            const double x = double(unit.qkv.f32()[j]) * double(given.qkv.f32()[j]);
            want += x, size += std::abs(x);
          }
          ASSERT_NEAR(gradient.f32()[i], want, 8 * u * size) << i;
        }
      };
      check(unit.kv, got.kv, [](const Case&, std::int64_t) { return true; });
      check(unit.first, got.first, [](const Case& c, std::int64_t column) {
        const std::int64_t queries = c.shape.heads.heads * c.shape.heads.head_dim;
        return (column >= c.q_first && column < c.q_first + queries) || (column >= c.k_first && column < c.k_first + c.shape.turned);
      });
    }
}

TEST(LatentHeads, PositionsAreThoseOfDocumentsAndOfPartsOfSequences) {
  Stream s(Device::cpu);
  const Case c{{{2, 2, 6, 20, {}, 4}, 4}, 40};
  const std::vector<std::int32_t> starts = random_document_starts(40, 20, 6);
  Parts p(s, c, DType::f32);
  p.arguments.document_starts = s.empty({40}, DType::i32);
  std::copy(starts.begin(), starts.end(), p.arguments.document_starts.as<std::int32_t>());
  latent_heads_forward(s, p.arguments);
  for (std::int64_t i = 0; i < p.qkv.count(); ++i) {
    const std::int64_t t = i / p.qkv.shape[1];
    ASSERT_NEAR(p.qkv.f32()[i], fused(c, p, t, i % p.qkv.shape[1], t % 20 - starts[std::size_t(t)]), 48 * u) << i;
  }
  const Case part{{{2, 2, 6, 20, SequencePart::of_member(40, 0, 2), 4}, 4}, 40};
  Parts of_part(s, part, DType::f32);
  of_part.arguments.table = rope_table(s, 40, 4, theta);
  latent_heads_forward(s, of_part.arguments);
  for (std::int64_t i = 0; i < of_part.qkv.count(); ++i) {
    const std::int64_t t = i / of_part.qkv.shape[1], place = part.shape.heads.place(t % 20);
    ASSERT_NEAR(of_part.qkv.f32()[i], fused(part, of_part, t, i % of_part.qkv.shape[1], place), 48 * u) << i;
  }
}

TEST(LatentHeads, RefuseShapesThatDoNotFit) {
  Stream s(Device::null);
  const Parts p(s, cases[1], DType::bf16);
  EXPECT_NO_THROW(latent_heads_forward(s, p.arguments));
  const auto refused = [&](auto change) {
    LatentArguments a = p.arguments;
    change(a);
    EXPECT_THROW(latent_heads_forward(s, a), ContractError);
    EXPECT_THROW(latent_heads_backward(s, a), ContractError);
  };
  refused([](LatentArguments& a) { a.shape.heads.kv_heads = 1; });
  refused([](LatentArguments& a) { a.shape.turned = 3; });
  refused([](LatentArguments& a) { a.q.first = 100; });
  refused([](LatentArguments& a) { a.k.first = a.k.of.shape[1] - 1; });
  refused([&](LatentArguments& a) { a.kv = a.qkv; });
  refused([&](LatentArguments& a) { a.table = rope_table(s, 5, 2, theta); });
}

}  // namespace
}  // namespace octet::ops
