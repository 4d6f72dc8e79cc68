#include "octet/base/text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "octet/base/check.hpp"

namespace octet {
namespace {

TEST(Text, FillsEveryHoleInOrder) { EXPECT_EQ(format("{} of {}", 1, "two"), "1 of two"); }

TEST(Text, ANounIsSingularAfterOneAlone) {
  EXPECT_EQ(counted(1, "document"), "1 document");
  EXPECT_EQ(counted(0, "document"), "0 documents");
  EXPECT_EQ(counted(4030, "bad line"), "4,030 bad lines");
}

TEST(Text, BytesKeepThreeDigits) {
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1.5 * 1024 * 1024), "1.50 MiB");
  EXPECT_EQ(bytes_text(200.0 * 1024), "200 KiB");
}

TEST(Text, ANumberIsShownWithAsManyDigitsAsItNeeds) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(double(0.1f)), "0.10000000149011612");
  EXPECT_EQ(fixed(1.25, 1, "-"), "1.2");
  EXPECT_EQ(fixed(INFINITY, 1, "-"), "-");
  EXPECT_EQ(fixed(NAN, 1, "none"), "none");
}

TEST(Text, ANumberIsReadWhenNothingStandsBesideIt) {
  EXPECT_EQ(parse_number("-2.5e3"), -2500);
  EXPECT_EQ(parse_number("+0x1.8p1"), 3);
  EXPECT_EQ(parse_number("inf"), INFINITY);
  EXPECT_TRUE(std::isnan(parse_number("nan").value()));
  for (const char* text : {"", " 1", "\t1", "1 ", "1%", "x"}) EXPECT_FALSE(parse_number(text)) << text;
  EXPECT_FALSE(parse_number(std::string("1\0", 2)));
}

TEST(Text, WordsAreJoinedByCommas) {
  EXPECT_EQ(joined(std::vector<std::string_view>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}, " | "), "a | b");
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
}

TEST(Text, ATypoFindsItsNearestName) {
  EXPECT_EQ(nearest("learning_rat", {"steps", "learning_rate", "warmup"}), "learning_rate");
  EXPECT_EQ(nearest("zzz", {"steps", "learning_rate"}), "");
}

TEST(Text, ControlBytesAreShownNotSent) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J \xC2\xB1 \xC3\xA9 \xC2"),
            "\\x9b2J \xC2\xB1 \xC3\xA9 \\xc2");
}

TEST(Check, ABrokenContractSaysWhatAndWhere) {
  try {
    check(false, "op: x must be {}, got {}", 3, "four");
    FAIL();
  } catch (const ContractError& e) {
    EXPECT_NE(std::string(e.what()).find("op: x must be 3, got four  [octet/base/text.test.cpp:"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::internal);
  }
}

TEST(Text, WhateverATerminalWouldActOnIsShownAsItsCode) {
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xff\xc3(caf\xc3\xa9)"), "\\xff\\xc3(caf\xc3\xa9)");
  EXPECT_EQ(printable("\xc2\x9b x \xe2\x80\xae y \xef\xbb\xbf"), "\\x9b x \\u202e y \\ufeff");
  EXPECT_EQ(printable("\xf0\x9f\x98\x80 \xe6\x97\xa5"), "\xf0\x9f\x98\x80 \xe6\x97\xa5") << "ordinary characters of any script remain";
}

TEST(Text, ALongTextIsShownByItsBeginningAndItsEnd) {
  const std::string shown = printable(format("{}b", std::string(100'000, 'a')));
  EXPECT_LE(shown.size(), 260u);
  EXPECT_TRUE(shown.starts_with("aaa") && shown.ends_with("ab") && shown.find("a...a") != shown.npos) << shown;
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "\xc3\xa9";
  EXPECT_EQ(printable(accents).find("\\x"), std::string::npos) << "cut inside a character";
}

TEST(Text, BytesThatAreNoCharactersAreShortenedToo) {
  EXPECT_LE(printable(std::string(200, '\x80'), 30).size(), 4 * 30u + 3);
  EXPECT_LE(printable(std::string_view("\0text", 5), 2).size(), 20u);
}

TEST(Text, ALargeNumberHasAllItsDigits) { EXPECT_EQ(fixed(1e80, 1).size(), 83u); }

TEST(Text, UpperCaseIsNoDistance) { EXPECT_EQ(nearest("TRIAN", {"train", "plan"}), "train"); }

}  // namespace
}  // namespace octet
