#include "octet/base/text.hpp"

#include <gtest/gtest.h>

#include "octet/base/check.hpp"

namespace octet {
namespace {

TEST(Text, fills_every_hole_in_order) { EXPECT_EQ(format("{} of {}", 1, "two"), "1 of two"); }

TEST(Text, bytes_keep_three_digits) {
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1.5 * 1024 * 1024), "1.50 MiB");
  EXPECT_EQ(bytes_text(200.0 * 1024), "200 KiB");
}

TEST(Text, a_typo_finds_its_nearest_name) {
  EXPECT_EQ(nearest("learning_rat", {"steps", "learning_rate", "warmup"}), "learning_rate");
  EXPECT_EQ(nearest("zzz", {"steps", "learning_rate"}), "");
}

TEST(Text, control_bytes_are_shown_not_sent) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J \xC2\xB1 \xC3\xA9 \xC2"),
            "\\x9b2J \xC2\xB1 \xC3\xA9 \xC2");
}

TEST(Check, a_broken_contract_says_what_and_where) {
  try {
    check(false, "op: x must be {}, got {}", 3, "four");
    FAIL();
  } catch (const ContractError& e) {
    EXPECT_NE(std::string(e.what()).find("op: x must be 3, got four  [octet/base/text.test.cpp:"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::internal);
  }
}

}  // namespace
}  // namespace octet
