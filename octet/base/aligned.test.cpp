#include "octet/base/aligned.hpp"

#include <gtest/gtest.h>

namespace octet {
namespace {

const TextTable table{
    {"arm", "loss", "gap", "verdict"}, {"bf16", "2.5", "-", "baseline"}, {"current", "2.51", "+0.4% \u00b10.1%", "within"}};

TEST(Aligned, ColumnsThatDoNotFitFollowInATableOfTheirOwn) {
  EXPECT_EQ(aligned_within(table, 80), aligned(table));
  // 7 + 2 + 4 + 2 + 11 = 26 characters; the plus-minus sign has two bytes
  const std::string losses =
      "arm      loss          gap\n"
      "--------------------------\n"
      "bf16      2.5            -\n"
      "current  2.51  +0.4% \u00b10.1%\n";
  const std::string verdicts =
      "arm       verdict\n"
      "-----------------\n"
      "bf16     baseline\n"
      "current    within\n";
  EXPECT_EQ(aligned_within(table, 26), losses + "\n" + verdicts);
  EXPECT_EQ(aligned_within(table, 35), losses + "\n" + verdicts);
  EXPECT_EQ(aligned_within(table, 36), aligned(table));
}

TEST(Aligned, AColumnThatIsWiderThanAllowedStandsAlone) {
  EXPECT_EQ(aligned_within({{"a", "b", "c"}, {"1", "long text", "2"}}, 5),
            "a          b\n------------\n1  long text\n\na  c\n----\n1  2\n");
}

}  // namespace
}  // namespace octet
