#include <gtest/gtest.h>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/ops/embedding/embedding.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr std::int64_t vocabulary = 11, length = 6;
constexpr std::int64_t shapes[][2] = {{0, 8}, {1, 1}, {6, 7}, {12, 64}, {18, 65}, {600, 200}};
constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16};

Tensor tokens_of(Stream& stream, const std::vector<std::int32_t>& ids) {
  const Tensor t = stream.empty({std::int64_t(ids.size())}, DType::i32);
  if (stream.device() == Device::cpu) std::copy(ids.begin(), ids.end(), t.as<std::int32_t>());
  return t;
}
Tensor some_tokens(Stream& stream, std::int64_t n) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < n; ++i) ids.push_back(std::int32_t(philox(5, std::uint64_t(i)).w[0] % vocabulary));
  return tokens_of(stream, ids);
}

// With and without documents.
std::vector<Tensor> some_starts(Stream& stream, std::int64_t tokens) {
  return {Tensor{}, tokens_of(stream, random_document_starts(tokens, length, 3))};
}
std::int64_t position_of(const Tensor& starts, std::int64_t t) { return t % length - (starts ? starts.as<std::int32_t>()[t] : 0); }

TEST(Embedding, EveryRowIsItsTokensRowPlusItsPositions) {
  for (const auto [rows, cols] : shapes)
    for (const DType dtype : dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::embedding_forward, cpu::v4::embedding_forward)) {
        Stream s(Device::cpu);
        const Tensor table = gaussian_tensor(s, {vocabulary, cols}, 1), positions = gaussian_tensor(s, {length, cols}, 2),
                     tokens = some_tokens(s, rows);
        const Tensor out = s.empty({rows, cols}, dtype), plain = s.empty({rows, cols}, dtype);
        kernel({.table = table, .tokens = tokens, .out = plain});
        const auto stored = [&](float x) { return testing::rounded(x, dtype); };
        for (const Tensor& starts : some_starts(s, rows)) {
          kernel({.table = table, .tokens = tokens, .out = out, .positions = positions, .document_starts = starts});
          for (std::int64_t t = 0; t < rows; ++t)
            for (std::int64_t c = 0; c < cols; ++c) {
              const float row = table.f32()[tokens.as<std::int32_t>()[t] * cols + c];
              ASSERT_EQ(value_at(plain, t * cols + c), stored(row));
              ASSERT_EQ(value_at(out, t * cols + c), stored(row + positions.f32()[position_of(starts, t) * cols + c]));
            }
        }
      }
}

TEST(Embedding, ATableOfCodesGivesTheRowsOfItsValues) {
  for (const DType codes : {DType::f16, DType::e4m3})
    for (const auto [rows, cols] : shapes)
      for (const DType dtype : dtypes)
        for (auto* const kernel : testing::kernels(cpu::v3::embedding_forward, cpu::v4::embedding_forward)) {
          Stream s(Device::cpu);
          const Tensor table = s.empty({vocabulary, cols}, codes), values = s.empty({vocabulary, cols}, DType::f32),
                       tokens = some_tokens(s, rows), factor = testing::tensor_of(s, {0x1p-9f}, {1}),
                       positions = gaussian_tensor(s, {length, cols}, 2);
          for (std::int64_t i = 0; i < table.count(); ++i) {
            if (codes == DType::f16) table.as<Fp16>()[i] = to_fp16(float(i % 4001) - 2000.0f);
            else table.u8()[i] = std::uint8_t(i % 127);
            values.f32()[i] = value_at(table, i) * 0x1p-9f;
          }
          const Tensor out = s.empty({rows, cols}, dtype), wanted = s.empty({rows, cols}, dtype);
          kernel({.table = table, .tokens = tokens, .out = out, .positions = positions, .descale = factor});
          kernel({.table = values, .tokens = tokens, .out = wanted, .positions = positions});
          ASSERT_EQ(testing::bytes(out), testing::bytes(wanted));
        }
}

// Adding in the order of t is the meaning of the op, so a plain loop gives its bits.
TEST(Embedding, BackwardAddsRowsInTheirOrderWhateverTheThreads) {
  for (const auto [rows, cols] : shapes)
    for (const DType dtype : dtypes) {
      Stream s(Device::cpu);
      for (const Tensor& starts : some_starts(s, rows)) {
        const Tensor dy = gaussian_tensor(s, {rows, cols}, 1, dtype), tokens = some_tokens(s, rows);
        const Tensor table = gaussian_tensor(s, {vocabulary, cols}, 3), positions = gaussian_tensor(s, {length, cols}, 4);
        std::vector<float> wanted(table.f32(), table.f32() + table.count()),
            wanted_positions(positions.f32(), positions.f32() + positions.count());
        for (std::int64_t t = 0; t < rows; ++t)
          for (std::int64_t c = 0; c < cols; ++c) {
            wanted[std::size_t(tokens.as<std::int32_t>()[t] * cols + c)] += value_at(dy, t * cols + c);
            wanted_positions[std::size_t(position_of(starts, t) * cols + c)] += value_at(dy, t * cols + c);
          }
        for (auto* const kernel : testing::kernels(cpu::v3::embedding_backward, cpu::v4::embedding_backward))
          for (const int threads : {1, 2, 3, 7}) {
            const testing::WithThreads limit(threads);
            const Tensor dtable = s.empty(table.shape, DType::f32), dpositions = s.empty(positions.shape, DType::f32);
            copy(s, table, dtable);
            copy(s, positions, dpositions);
            kernel({.dy = dy, .tokens = tokens, .dtable = dtable, .dpositions = dpositions, .document_starts = starts}, Tensor{});
            ASSERT_EQ(std::vector<float>(dtable.f32(), dtable.f32() + dtable.count()), wanted) << rows << " " << cols << " " << threads;
            ASSERT_EQ(std::vector<float>(dpositions.f32(), dpositions.f32() + dpositions.count()), wanted_positions);
          }
      }
    }
}

// A table whose rows two owners have: sums of their rows and gradients are those of the whole table.
TEST(Embedding, PartsOfATableAddUpToTheWholeTable) {
  Stream s(Device::cpu);
  const Tensor table = gaussian_tensor(s, {vocabulary, 65}, 1), tokens = some_tokens(s, 18), dy = gaussian_tensor(s, {18, 65}, 2);
  const Tensor whole = s.empty({18, 65}, DType::f32), dtable = s.zeros(table.shape, DType::f32), dparts = s.zeros(table.shape, DType::f32);
  embedding_forward(s, {.table = table, .tokens = tokens, .out = whole});
  embedding_backward(s, {.dy = dy, .tokens = tokens, .dtable = dtable});
  std::vector<double> sum(std::size_t(whole.count()), 0.0);
  for (const auto& [first, rows] : {std::pair{0, 4}, {4, 7}}) {
    const Tensor out = s.empty(whole.shape, DType::f32);
    const TableRows place{first, vocabulary};
    embedding_forward(s, {.table = table.rows(first, rows), .tokens = tokens, .out = out, .rows = place});
    embedding_backward(s, {.dy = dy, .tokens = tokens, .dtable = dparts.rows(first, rows), .rows = place});
    for (std::int64_t i = 0; i < out.count(); ++i) sum[std::size_t(i)] += double(out.f32()[i]);
  }
  EXPECT_EQ(sum, testing::values(whole));
  EXPECT_EQ(testing::values(dparts), testing::values(dtable));
  EXPECT_THROW(embedding_forward(s, {.table = table.rows(0, 4), .tokens = tokens, .out = whole, .rows = {9, vocabulary}}), ContractError);
}

// Of rows that two owners have, and of parts of sequences: each token adds one position, that of its place in the whole sequence.
TEST(Embedding, PositionsOfPartsAreThoseOfTheWhole) {
  Stream s(Device::cpu);
  constexpr std::int64_t whole = 8, sequences = 3, cols = 9;
  const Tensor table = gaussian_tensor(s, {vocabulary, cols}, 1), positions = gaussian_tensor(s, {whole, cols}, 2),
               tokens = some_tokens(s, sequences * whole), dy = gaussian_tensor(s, {sequences * whole, cols}, 3);
  for (const bool documents : {false, true}) {
    const std::vector<std::int32_t> all_starts = random_document_starts(sequences * whole, whole, 3);
    const Tensor starts = documents ? tokens_of(s, all_starts) : Tensor{};
    const Tensor expected = s.empty({sequences * whole, cols}, DType::f32), dpositions = s.zeros({whole, cols}, DType::f32),
                 dtable = s.zeros(table.shape, DType::f32);
    embedding_forward(s, {.table = table, .tokens = tokens, .out = expected, .positions = positions, .document_starts = starts});
    embedding_backward(s, {.dy = dy, .tokens = tokens, .dtable = dtable, .dpositions = dpositions, .document_starts = starts});
    std::vector<double> sum(std::size_t(expected.count()), 0.0), dsum(std::size_t(dpositions.count()), 0.0);
    for (const int member : {0, 1}) {
      const SequencePart part = SequencePart::of_member(whole, member, 2);
      const auto place = [&](std::int64_t row) { return row / 4 * whole + part.place(row % 4, 4); };
      const std::int64_t rows = sequences * 4;
      std::vector<std::int32_t> ids, own_starts;
      const Tensor own_dy = s.empty({rows, cols}, DType::f32), out = s.empty({rows, cols}, DType::f32);
      for (std::int64_t r = 0; r < rows; ++r) {
        ids.push_back(tokens.as<std::int32_t>()[place(r)]), own_starts.push_back(all_starts[std::size_t(place(r))]);
        copy(s, dy.rows(place(r), 1), own_dy.rows(r, 1));
      }
      const Tensor own = tokens_of(s, ids), own_places = documents ? tokens_of(s, own_starts) : Tensor{};
      for (const auto& [first, count] : {std::pair{0, 4}, {4, 7}}) {
        const TableRows of{first, vocabulary};
        const Tensor d = s.zeros({whole, cols}, DType::f32), dt = s.zeros({count, cols}, DType::f32);
        embedding_forward(s, {.table = table.rows(first, count),
                              .tokens = own,
                              .out = out,
                              .positions = positions,
                              .document_starts = own_places,
                              .rows = of,
                              .part = part});
        embedding_backward(
            s, {.dy = own_dy, .tokens = own, .dtable = dt, .dpositions = d, .document_starts = own_places, .rows = of, .part = part});
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < cols; ++c) sum[std::size_t(place(r) * cols + c)] += double(out.f32()[r * cols + c]);
        for (std::int64_t i = 0; i < d.count(); ++i) dsum[std::size_t(i)] += double(d.f32()[i]);
      }
    }
    EXPECT_EQ(sum, testing::values(expected));
    for (std::size_t i = 0; i < dsum.size(); ++i) EXPECT_NEAR(dsum[i], dpositions.f32()[i], 1e-5);
  }
  const Tensor out = s.empty({12, cols}, DType::f32), own = tokens_of(s, std::vector<std::int32_t>(12, 1));
  EXPECT_THROW(
      embedding_forward(
          s, {.table = table, .tokens = own, .out = out, .positions = positions.rows(0, 6), .part = SequencePart::of_member(whole, 0, 2)}),
      ContractError);
}

TEST(Embedding, AnIdOutsideTheTableIsRefusedByPlaceAndValueBeforeAnythingIsWritten) {
  Stream s(Device::cpu);
  const Tensor table = s.zeros({4, 3}, DType::f32), rows = gaussian_tensor(s, {3, 3}, 1);
  for (const std::int32_t bad : {4, -1, 0x7FFFFFFF}) {
    const Tensor tokens = tokens_of(s, {0, 3, bad});
    const auto expect_refusal = [&](auto op) {
      try {
        op();
        FAIL() << "accepted " << bad;
      } catch (const ContractError& e) {
        EXPECT_NE(std::string(e.what()).find("token " + std::to_string(bad) + " at position 2 is outside [0, 4)"), std::string::npos)
            << e.what();
      }
    };
    expect_refusal([&] { embedding_forward(s, {.table = table, .tokens = tokens, .out = rows}); });
    expect_refusal([&] { embedding_backward(s, {.dy = rows, .tokens = tokens, .dtable = table}); });
  }
  EXPECT_EQ(testing::values(table), std::vector<double>(12, 0.0));
}

TEST(Embedding, DryRunNeedsTheSameMemory) {
  for (const auto [rows, cols] : shapes)
    testing::expect_dry_run_agrees([rows = rows, cols = cols](Stream& s) {
      const Tensor table = gaussian_tensor(s, {vocabulary, cols}, 1), positions = gaussian_tensor(s, {length, cols}, 2),
                   tokens = some_tokens(s, rows);
      const Tensor out = s.empty({rows, cols}, DType::bf16);
      embedding_forward(s, {.table = table, .tokens = tokens, .out = out, .positions = positions});
      embedding_backward(s, {.dy = out, .tokens = tokens, .dtable = table, .dpositions = positions});
    });
}

TEST(Embedding, RefusesTensorsThatDoNotFit) {
  Stream s(Device::null);
  const Tensor table = s.empty({11, 8}, DType::f32), tokens = s.empty({4}, DType::i32), out = s.empty({4, 8}, DType::f32),
               narrow = s.empty({4, 7}, DType::f32);
  EXPECT_THROW(embedding_forward(s, {.table = table, .tokens = tokens, .out = narrow}), ContractError);
  EXPECT_THROW(embedding_forward(s, {.table = table, .tokens = out, .out = out}), ContractError);
  EXPECT_THROW(embedding_forward(s, {.table = s.empty({11, 8}, DType::f16), .tokens = tokens, .out = out}), ContractError);
  EXPECT_THROW(embedding_forward(s, {.table = table, .tokens = tokens, .out = out, .positions = narrow}), ContractError);
  EXPECT_THROW(embedding_backward(s, {.dy = out, .tokens = tokens, .dtable = narrow}), ContractError);
}

}  // namespace
}  // namespace octet::ops
