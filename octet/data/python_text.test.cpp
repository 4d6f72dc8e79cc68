#include "octet/data/python_text.hpp"

#include <gtest/gtest.h>

namespace octet::data {
namespace {

// Results of Python 3.11.
TEST(PythonText, IsStrippedOfAllThatPythonCallsSpace) {
  EXPECT_EQ(stripped("\x1c\t a\u00a0b \u3000\u2028\n"), "a\u00a0b");
  EXPECT_EQ(stripped_behind(" a\x1f\u0085\v"), " a");
  EXPECT_EQ(stripped_behind("a\u200b "), "a\u200b") << "a zero width space is none";
  EXPECT_EQ(stripped("\u00a0 "), "");
}

TEST(PythonText, IsCapitalizedAsPythonDoes) {
  EXPECT_EQ(capitalized("the Cook İ"), "The cook i\u0307");
  EXPECT_EQ(capitalized("ÉTÉ"), "Été");
  EXPECT_EQ(capitalized("été"), "Été");
  EXPECT_EQ(capitalized("жук ΑΒΓ"), "Жук αβγ");
  EXPECT_EQ(capitalized("ÿ"), "Ÿ");
  EXPECT_EQ(capitalized("狐 A"), "狐 a");
  EXPECT_EQ(capitalized("1A"), "1a");
  EXPECT_EQ(capitalized(""), "");
}

}  // namespace
}  // namespace octet::data
