#include "octet/base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace octet {
namespace {

TEST(Utf8, TheBordersOfEveryLengthAreExact) {
  for (const auto* good : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(valid_utf8_bytes(good), std::string_view(good).size());
  }
  for (const auto* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xEF\xBF", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(valid_utf8_bytes(std::string("ok") + bad + "rest"), 2u);
  }
}

}  // namespace
}  // namespace octet
