#include "octet/data/windows.hpp"

#include <gtest/gtest.h>

#include "octet/data/corpus.testing.hpp"
#include "octet/data/eval_batches.hpp"

namespace octet::data {
namespace {

/// One document of the bytes 0, 1, ... 255, 0, ... and its separator: a token tells its place.
struct Counting : ::testing::Test {
  Scratch scratch;
  std::unique_ptr<Dataset> dataset;
  Counting() {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += char(i);
    dataset = std::make_unique<Dataset>(make_dataset(scratch, {text}, 1024));
  }
};

/// A batch of one row.
Batch row_of(const Windows& windows) {
  Batch batch;
  batch.rows = 1, batch.length = windows.length(), batch.document_mask = windows.documents() == Documents::masked;
  batch.resize();
  return batch;
}

TEST_F(Counting, EveryTokenOfTheRangeButTheFirstIsATargetOnce) {
  for (const std::int64_t length : {1, 2, 7, 100}) {
    const Windows windows(*dataset, TokenRanges{{100, 301}}, length, "training");
    ASSERT_EQ(windows.count(), 200u / std::uint64_t(length));
    Batch batch = row_of(windows);
    std::int32_t next = 101;
    for (std::uint64_t w = 0; w < windows.count(); ++w) {
      windows.read(w, batch, 0);
      for (std::size_t t = 0; t < batch.inputs.size(); ++t, ++next) {
        ASSERT_EQ(batch.targets[t], next % 256);
        ASSERT_EQ(batch.inputs[t], (next - 1) % 256);
      }
    }
  }
}

TEST_F(Counting, ARangeOfExactlyOneWindowIsEnoughAndOneTokenLessIsNot) {
  EXPECT_EQ(Windows(*dataset, TokenRanges{{0, 11}}, 10, "training").count(), 1u);
  EXPECT_EQ(error_of<ConfigError>([&] {
              Windows(*dataset, TokenRanges{{0, 10}}, 10, "training");
            }),
            "data.sequence_length = 10 needs 11 tokens, the training part of '" + scratch.at("data") +
                "' has 10; shorten it (eval: --sequence), change data.eval_fraction (eval: --held-out) or tokenize more text");
  EXPECT_EQ(error_of<ConfigError>([&] {
              Windows(*dataset, TokenRanges{{5, 5}}, 10, "held-out");
            }),
            "the held-out part of '" + scratch.at("data") +
                "' is empty; set data.eval_fraction (eval: --held-out) above 0 or tokenize more documents");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Windows(*dataset, TokenRanges{{0, 10}}, 0, "training"); }), "must be at least 1, got 0"));
  EXPECT_TRUE(has(error_of<ConfigError>([&] {
                    Windows(*dataset, TokenRanges{{0, 10}}, INT64_MAX, "training");
                  }),
                  "needs 9223372036854775808 tokens"));
}

TEST_F(Counting, EvaluationReadsAllWindowsInOrderAndOnlyItsLastBatchIsSmaller) {
  const EvalBatches batches(Windows(*dataset, TokenRanges{{0, 111}}, 10, "held-out"), 4, 0);
  ASSERT_EQ(batches.size(), 3u);
  std::int32_t next = 0;
  for (std::uint64_t b = 0; b < 3; ++b) {
    const Batch batch = batches[b];
    EXPECT_EQ(batch.rows, b < 2 ? 4 : 3);
    EXPECT_EQ(batch.length, 10);
    EXPECT_EQ(batch.first_sample, 4 * b);
    ASSERT_EQ(batch.inputs.size(), std::size_t(batch.rows * 10));
    for (std::size_t i = 0; i < batch.inputs.size(); ++i, ++next) {
      ASSERT_EQ(batch.inputs[i], next);
      ASSERT_EQ(batch.targets[i], next + 1);
    }
  }
}

TEST_F(Counting, RangesAreReadAsOneText) {
  const Windows windows(*dataset, TokenRanges{{0, 3}, {10, 11}, {20, 40}}, 4, "training");
  ASSERT_EQ(windows.count(), 5u);
  Batch batch = row_of(windows);
  windows.read(0, batch, 0);
  EXPECT_EQ(batch.inputs, (std::vector<std::int32_t>{0, 1, 2, 10}));
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{1, 2, 10, 20}));
  windows.read(4, batch, 0);
  EXPECT_EQ(batch.inputs, (std::vector<std::int32_t>{32, 33, 34, 35}));
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{33, 34, 35, 36}));
}

// By its definition: a document begins at token 0, after every separator and at every border of ranges.
TEST(Windows, MaskedDocumentsBeginAgainAndTheirFirstTokensAreNoTargets) {
  const Scratch scratch;
  const std::vector<std::string> texts = some_texts(40, 1);
  const Dataset dataset(make_dataset(scratch, texts, 1024));
  const std::vector<std::int32_t> stream = all_tokens(dataset);
  const TokenRanges whole{{0, dataset.token_count()}},
      parts{{dataset.document_start(2), dataset.document_start(7)}, {dataset.document_start(9), dataset.document_start(33)}}, cut{{5, 200}};
  for (const TokenRanges& ranges : {whole, parts, cut})
    for (const std::int64_t length : {1, 5, 64}) {
      std::vector<std::int32_t> text;
      std::vector<bool> begins;
      for (const TokenRange& range : ranges)
        for (std::uint64_t i = range.begin; i < range.end; ++i)
          begins.push_back(i == range.begin || stream[i - 1] == 256), text.push_back(stream[i]);
      const Windows windows(dataset, ranges, length, "training", Documents::masked);
      Batch batch = row_of(windows);
      for (std::uint64_t w = 0; w < windows.count(); ++w) {
        windows.read(w, batch, 0);
        std::int32_t start = 0;
        for (std::int64_t t = 0; t < length; ++t) {
          const std::size_t at = std::size_t(std::int64_t(w) * length + t);
          if (begins[at]) start = std::int32_t(t);
          ASSERT_EQ(batch.inputs[std::size_t(t)], text[at]);
          ASSERT_EQ(batch.targets[std::size_t(t)], begins[at + 1] ? -1 : text[at + 1]) << at;
          ASSERT_EQ(batch.document_starts[std::size_t(t)], start) << at;
        }
      }
    }
}

TEST_F(Counting, AnEvaluationReadsTheSameTokensWhateverItsBatches) {
  const Windows windows(*dataset, TokenRanges{{0, 241}}, 10, "held-out");
  const auto tokens = [&](std::int64_t rows) {
    std::vector<std::int32_t> out;
    const EvalBatches batches(windows, rows, 75);
    for (std::uint64_t b = 0; b < batches.size(); ++b)
      for (const std::int32_t token : batches[b].targets) out.push_back(token);
    return out;
  };
  EXPECT_EQ(tokens(1).size(), 80u);
  for (const std::int64_t rows : {2, 3, 8, 100}) EXPECT_EQ(tokens(rows), tokens(1)) << rows;
}

TEST_F(Counting, ALimitedEvaluationSpreadsOverTheWholeText) {
  const Windows windows(*dataset, TokenRanges{{0, 241}}, 10, "held-out");  // 24 windows
  const EvalBatches few(windows, 2, 60);
  ASSERT_EQ(few.size(), 3u);
  std::vector<std::int32_t> first_tokens;
  for (std::uint64_t b = 0; b < few.size(); ++b)
    for (std::int64_t r = 0; r < 2; ++r) first_tokens.push_back(few[b].inputs[std::size_t(r * 10)]);
  EXPECT_EQ(first_tokens, (std::vector<std::int32_t>{0, 40, 80, 120, 160, 200}));
  EXPECT_EQ(EvalBatches(windows, 5, 250).size(), 5u) << "a limit above what there is changes nothing";
  EXPECT_EQ(EvalBatches(windows, 5, 250)[4].rows, 4);
  EXPECT_EQ(EvalBatches(windows, 100, 1)[0].rows, 1) << "rounded up to a window";
}

}  // namespace
}  // namespace octet::data
