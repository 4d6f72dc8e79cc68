#include "octet/ops/first_keys/first_keys.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/attention/attention.hpp"
#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/first_keys/first_keys.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

Tensor starts_of(Stream& s, std::int64_t tokens, std::int64_t sequence) {
  const Tensor out = s.empty({tokens}, DType::i32, Lifetime::run);
  const auto starts = random_document_starts(tokens, sequence, 9);
  std::copy(starts.begin(), starts.end(), out.as<std::int32_t>());
  return out;
}

// Every pair of a token and a key of its sequence, by the definition: both are of one document, and the key is not `window` away.
TEST(FirstKeys, ATokenReadsTheKeysOfItsDocumentWithinTheWindow) {
  for (auto* const kernel : testing::kernels(cpu::v3::first_keys, cpu::v4::first_keys))
    for (const bool documents : {false, true})
      for (const std::int64_t window : {1, 5, 40})
        for (const SequencePart part : {SequencePart{}, SequencePart::of_member(32, 1, 2)}) {
          Stream s(Device::cpu);
          const std::int64_t sequence = part ? 16 : 32;
          const Tensor starts = documents && !part ? starts_of(s, 3 * sequence, sequence) : Tensor{},
                       keys = s.empty({3 * sequence}, DType::i32);
          kernel({.starts = starts, .window = window, .sequence = sequence, .part = part, .keys = keys});
          for (std::int64_t t = 0; t < keys.count(); ++t) {
            const std::int64_t place = part.place(t % sequence, sequence), start = starts ? starts.as<std::int32_t>()[t] : 0;
            for (std::int64_t j = 0; j <= place; ++j)
              ASSERT_EQ(j >= keys.as<std::int32_t>()[t], j >= start && place - j < window) << t << " " << j << " of " << window;
          }
        }
}

// Attention in double over the window alone; blocks of keys before it are not computed.
TEST(FirstKeys, AttentionReadsTheWindowAlone) {
  Stream s(Device::cpu);
  const QkvShape heads{2, 1, 8, 150};
  const std::int64_t window = 20, tokens = heads.sequence, d = heads.head_dim;
  const Tensor qkv = testing::gaussian_tensor(s, {tokens, heads.columns()}, 1), o = s.empty({tokens, heads.out_columns()}, DType::f32),
               lse = s.empty({2, tokens}, DType::f32), keys = s.empty({tokens}, DType::i32);
  first_keys(s, {.starts = {}, .window = window, .sequence = tokens, .keys = keys});
  attention_forward(s, {.qkv = qkv, .o = o, .lse = lse, .heads = heads, .document_starts = keys});
  const auto x = [&](std::int64_t t, std::int64_t column) { return double(qkv.f32()[t * heads.columns() + column]); };
  for (const std::int64_t t : {0, 19, 20, 64, 149})
    for (std::int64_t c = 0; c < d; ++c) {
      double sum = 0, out = 0;
      for (std::int64_t j = std::max<std::int64_t>(0, t - window + 1); j <= t; ++j) {
        double score = 0;
        for (std::int64_t i = 0; i < d; ++i) score += x(t, i) * x(j, heads.key_column(0) + i) / std::sqrt(double(d));
        sum += std::exp(score), out += std::exp(score) * x(j, heads.value_column(0) + c);
      }
      EXPECT_NEAR(o.f32()[t * heads.out_columns() + c], out / sum, testing::dot_bound(100, testing::unit_f32, 8)) << t << " " << c;
    }
}

TEST(FirstKeys, RefusesOtherShapes) {
  Stream s(Device::null);
  const Tensor keys = s.empty({8}, DType::i32);
  EXPECT_THROW(first_keys(s, {.starts = {}, .window = 0, .sequence = 4, .keys = keys}), ContractError);
  EXPECT_THROW(first_keys(s, {.starts = {}, .window = 1, .sequence = 3, .keys = keys}), ContractError);
  EXPECT_THROW(first_keys(s, {.starts = s.empty({4}, DType::i32), .window = 1, .sequence = 4, .keys = keys}), ContractError);
  EXPECT_THROW(first_keys(s, {.starts = {}, .window = 1, .sequence = 4, .keys = s.empty({8}, DType::f32)}), ContractError);
}

}  // namespace
}  // namespace octet::ops
