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

}  // namespace
}  // namespace octet
