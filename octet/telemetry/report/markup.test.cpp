#include "octet/telemetry/report/markup.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/telemetry/report/well_formed.test.hpp"

namespace octet::telemetry::report {
namespace {

TEST(Markup, EveryTextAndAttributeIsEscaped) {
  Markup m;
  {
    const auto a = m.in("a", {{"title", "\"><script>"}});
    m.text("<b> & 'c'");
    m.leaf("br");
  }
  EXPECT_EQ(m.text(), "<a title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt; &amp; &#39;c&#39;<br/></a>");
  EXPECT_EQ(WellFormed::fault(m.text()), "");
}

TEST(Markup, WhatCannotBeShownBecomesAReplacementCharacter) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("a\x1b[31m\x01"), "a" + r + "[31m" + r);
  EXPECT_EQ(escaped(std::string_view("\0", 1)), r);
  EXPECT_EQ(escaped("\xff\xc0\x80"), r + r + r);          // never UTF-8, and an overlong NUL
  EXPECT_EQ(escaped("\xed\xa0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(escaped("\xe2\x80\xae"
                    "x\xe2\x80\xa8"),
            r + "x" + r);                 // right-to-left override, line separator
  EXPECT_EQ(escaped("\xc2\x9b"), r);      // a C1 control
  EXPECT_EQ(escaped("\xe2\x82"), r + r);  // cut short
  EXPECT_EQ(escaped("é € 𝄞\n\t"), "é € 𝄞\n\t");
}

TEST(Markup, CoordinatesAreShortAndAlwaysNumbers) {
  EXPECT_EQ(coordinate(12.5), "12.5");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(coordinate(100), "100");
  EXPECT_EQ(coordinate(NAN), "0");
  EXPECT_EQ(coordinate(INFINITY), "0");
  EXPECT_EQ(percent(0.12345), "12.35%");
}

TEST(WellFormedCheck, FindsWhatItIsFor) {
  EXPECT_EQ(WellFormed::fault("<a b=\"c\"><d/>x &amp; y</a>"), "");
  for (const char* bad :
       {"<a>", "<a></b>", "<a b=c/>", "<a b=\"<\"/>", "<a b=\"1\" b=\"2\"/>", "a & b", "</a>", "<a", "< a/>", "<a>&nbsp;</a>"})
    EXPECT_NE(WellFormed::fault(bad), "") << bad;
}

}  // namespace
}  // namespace octet::telemetry::report
