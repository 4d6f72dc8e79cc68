#include "octet/data/split.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

TEST(Split, the_last_hundredth_of_the_documents_is_held_out) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(250), 4096));
  const Split split = split_documents(dataset, 0.01);
  EXPECT_EQ(split.held_out, (TokenRange{dataset.document_start(248), dataset.token_count()}));
  EXPECT_EQ(split.train, (TokenRange{0, dataset.document_start(248)}));
  EXPECT_EQ(split_documents(dataset, 0.5).train.end, dataset.document_start(125));
  EXPECT_EQ(split_documents(dataset, 0.0001).train.end, dataset.document_start(249)) << "at least one document";
  EXPECT_EQ(split_documents(dataset, 0.9999).train.end, dataset.document_start(1)) << "never all";
}

TEST(Split, a_fraction_that_names_a_whole_number_of_documents_gives_that_number) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(100)));
  for (std::uint64_t n = 1; n < 100; ++n) ASSERT_EQ(split_documents(dataset, double(n) / 100).train.end, dataset.document_start(100 - n)) << n;
}

TEST(Split, a_single_document_is_cut_inside) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, {noise(999, 1)}));
  EXPECT_EQ(split_documents(dataset, 0.01).held_out, (TokenRange{990, 1000}));
}

TEST(Split, fraction_zero_holds_out_nothing) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(3)));
  const Split split = split_documents(dataset, 0);
  EXPECT_EQ(split.train, (TokenRange{0, dataset.token_count()}));
  EXPECT_EQ(split.held_out.size(), 0u);
}

TEST(Split, a_fraction_outside_its_range_is_refused) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, some_texts(3)));
  for (const double bad : {-0.1, 1.0, 2.0, std::nan("")})
    EXPECT_TRUE(has(error_of<ConfigError>([&] { split_documents(dataset, bad); }), "data.eval_fraction must be at least 0 and below 1, got "));
}

}  // namespace
}  // namespace octet::data
