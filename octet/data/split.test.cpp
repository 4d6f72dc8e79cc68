#include "octet/data/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

/// The numbers of the documents that lie in `ranges`, which must hold whole documents.
std::vector<std::uint64_t> documents_in(const Dataset& dataset, const TokenRanges& ranges) {
  std::vector<std::uint64_t> out;
  std::uint64_t tokens = 0;
  for (std::uint64_t i = 0; i < dataset.document_count(); ++i) {
    const std::uint64_t begin = dataset.document_start(i),
                        end = i + 1 < dataset.document_count() ? dataset.document_start(i + 1) : dataset.token_count();
    for (const TokenRange& range : ranges)
      if (range.begin <= begin && end <= range.end) out.push_back(i), tokens += end - begin;
  }
  for (const TokenRange& range : ranges) tokens -= range.size();
  EXPECT_EQ(tokens, 0u) << "a document was cut";
  return out;
}

std::size_t held_out_documents(const Dataset& dataset, double fraction) {
  return documents_in(dataset, split_documents(dataset, fraction).held_out).size();
}

TEST(Split, EveryDocumentIsTrainedOnOrHeldOutAndTheShareIsHeldOut) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(250), 4096));
  for (const auto& [fraction, count] : {std::pair(0.01, 2u), {0.5, 125u}, {0.0001, 1u}, {0.9999, 249u}}) {
    const Split split = split_documents(dataset, fraction);
    const auto held_out = documents_in(dataset, split.held_out), train = documents_in(dataset, split.train);
    EXPECT_EQ(held_out.size(), count) << fraction;
    EXPECT_EQ(train.size(), 250 - count) << fraction;
    for (const std::uint64_t i : held_out) EXPECT_FALSE(std::binary_search(train.begin(), train.end(), i)) << i;
  }
}

TEST(Split, HeldOutDocumentsAreSpreadOverTheDatasetAndALargerShareHoldsOutMoreOfThem) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(400)));
  const auto some = documents_in(dataset, split_documents(dataset, 0.1).held_out),
             more = documents_in(dataset, split_documents(dataset, 0.2).held_out);
  for (const std::uint64_t i : some) EXPECT_TRUE(std::binary_search(more.begin(), more.end(), i)) << i;
  for (std::uint64_t quarter = 0; quarter < 4; ++quarter) {
    const auto n = std::count_if(more.begin(), more.end(), [&](std::uint64_t i) { return i / 100 == quarter; });
    EXPECT_NEAR(double(n), 20, 5 * std::sqrt(100 * 0.2 * 0.8)) << quarter;
  }
  EXPECT_EQ(split_documents(dataset, 0.1).held_out, split_documents(dataset, 0.1).held_out);
}

TEST(Split, AFractionThatNamesAWholeNumberOfDocumentsGivesThatNumber) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(100)));
  for (std::uint64_t n = 1; n < 100; ++n) ASSERT_EQ(held_out_documents(dataset, double(n) / 100), n);
}

TEST(Split, ASingleDocumentIsCutInside) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, {noise(999, 1)}));
  EXPECT_EQ(split_documents(dataset, 0.01).held_out, (TokenRanges{{990, 1000}}));
  EXPECT_EQ(split_documents(dataset, 0.01).train, (TokenRanges{{0, 990}}));
}

TEST(Split, FractionZeroHoldsOutNothing) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(3)));
  const Split split = split_documents(dataset, 0);
  EXPECT_EQ(split.train, (TokenRanges{{0, dataset.token_count()}}));
  EXPECT_TRUE(split.held_out.empty());
}

TEST(Split, AFractionOutsideItsRangeIsRefused) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(3)));
  for (const double bad : {-0.1, 1.0, 2.0, std::nan("")})
    EXPECT_TRUE(
        has(error_of<ConfigError>([&] { split_documents(dataset, bad); }), "data.eval_fraction must be at least 0 and below 1, got "));
}

}  // namespace
}  // namespace octet::data
