#include <gtest/gtest.h>

#include "octet/data/ahead.hpp"

namespace octet::data {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(Ahead, TheLastPlacesOfARowHaveNoTarget) {
  const Batch b{.rows = 2, .length = 4, .inputs = {1, 2, 3, 4, 11, 12, 13, 14}, .targets = {2, 3, 4, 5, 12, 13, 14, 15}};
  const Ahead one = ahead_of(b, 1), two = ahead_of(b, 2);
  EXPECT_EQ(one.inputs, (Tokens{2, 3, 4, 4, 12, 13, 14, 14}));
  EXPECT_EQ(one.targets, (Tokens{3, 4, 5, -1, 13, 14, 15, -1}));
  EXPECT_EQ(two.inputs, (Tokens{3, 4, 3, 4, 13, 14, 13, 14}));
  EXPECT_EQ(two.targets, (Tokens{4, 5, -1, -1, 14, 15, -1, -1}));
  EXPECT_EQ(ahead_of(b, 4).targets, Tokens(8, -1));
}

// Two documents of three tokens, the first of which began in an earlier row: targets are -1 at its end, and in the prompt of the second.
TEST(Ahead, NoPlaceReadsAnotherDocument) {
  Batch b{.rows = 1, .length = 6, .inputs = {1, 2, 3, 4, 5, 6}, .targets = {2, 3, -1, -1, 6, 7}, .document_mask = true};
  b.document_starts = {0, 0, 0, 3, 3, 3};
  const Ahead one = ahead_of(b, 1), two = ahead_of(b, 2);
  EXPECT_EQ(one.inputs, (Tokens{2, 3, 3, 5, 6, 6}));
  EXPECT_EQ(one.targets, (Tokens{3, -1, -1, 6, 7, -1})) << "a prompt's token predicts the answer's second one";
  EXPECT_EQ(two.inputs, (Tokens{3, 2, 3, 6, 5, 6}));
  EXPECT_EQ(two.targets, (Tokens{-1, -1, -1, 7, -1, -1}));
}

}  // namespace
}  // namespace octet::data
