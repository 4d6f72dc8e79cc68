#include <gtest/gtest.h>

#include "octet/base/wrapped.hpp"

namespace octet {
namespace {

TEST(Wrapped, BreaksLinesBeforeTheColumnAndIndentsAllButTheFirst) {
  EXPECT_EQ(wrapped("", 0, 10), "\n");
  EXPECT_EQ(wrapped("one two three", 0, 80), "one two three\n");
  EXPECT_EQ(wrapped("one two three four", 2, 10), "one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("averylongword b", 0, 5), "averylongword\nb\n");
}

TEST(Wrapped, LongLinesContinueUnderTheirText) {
  EXPECT_EQ(wrapped_lines("job      four GPUs of one node\n         and more words here\nshort\n", 22),
            "job      four GPUs of\n         one node\n         and more\n         words here\nshort\n");
  EXPECT_EQ(wrapped_lines("   time    GEMMs 60%, head 10%\n", 22), "   time    GEMMs 60%,\n           head 10%\n");
  EXPECT_EQ(wrapped_lines("one two three four five six\n", 12), "one two\nthree four\nfive six\n");
  EXPECT_EQ(wrapped_lines("", 12), "");
}

}  // namespace
}  // namespace octet
