#include "octet/tokenizer/regex.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "octet/tokenizer/unicode.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::tokenizer {
namespace {

using testing::error_of;
using testing::has;

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  const Regex regex(pattern, "file", "pattern");
  Regex::Scratch scratch;
  std::vector<std::string> found;
  Match match;
  for (std::size_t at = 0; regex.find(text, at, scratch, match); at = match.end)
    found.emplace_back(text.substr(match.begin, match.end - match.begin));
  return found;
}

using Texts = std::vector<std::string>;

TEST(Regex, TheDefaultPatternDividesAsItsSourceDescribes) {
  EXPECT_EQ(matches(std::string(default_pattern), "I'll say: 12345 times\n\n  no!"),
            (Texts{"I", "'ll", " say", ":", " ", "123", "45", " times", "\n\n", " ", " no", "!"}));
}

TEST(Regex, WhiteSpaceAndWordsHaveTheirUnicodeDefinitions) {
  for (char32_t code = 1; code < 0x3100; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    ASSERT_EQ(matches("\\s", text).size(), is_white_space(code) ? 1u : 0u) << std::hex << unsigned(code);
    ASSERT_EQ(matches("\\S", text).size(), is_white_space(code) ? 0u : 1u) << std::hex << unsigned(code);
    ASSERT_EQ(matches("[^\\s]", text).size(), is_white_space(code) ? 0u : 1u) << std::hex << unsigned(code);
  }
  EXPECT_EQ(matches("\\w+", "a\u0301b c_\u0663 \u00b2"), (Texts{"a\u0301b", "c_\u0663"}));
  EXPECT_EQ(matches("\\d+", "12\u0663\u00b2"), (Texts{"12\u0663"}));
  EXPECT_EQ(matches("\\p{Han}+|\\x{41}|\\u0042", "\u4e2dABC\u3042"), (Texts{"\u4e2d", "A", "B"}));
}

TEST(Regex, SyntaxWithoutOneMeaningIsRefusedByName) {
  const auto refusal = [](const std::string& pattern) {
    return error_of<DataError>([&] { Regex(pattern, "tokenizer.json", "pattern.Regex"); });
  };
  const std::vector<std::pair<std::string, std::string>> table = {
      {"^a", "the anchor ^"},       {"a$", "the anchor $"},        {"\\ba", "the escape \\b"},         {"(a)\\1", "the escape \\1"},
      {"[a[b]]", "a class within"}, {"[a&&b]", "operator &&"},     {"[\\S]", "a negated set"},         {"a{1,3}+", "quantifier {...}+"},
      {"a{,3}", "lower limit"},     {"(?<n>a)", "the group (?<n"}, {"(?i)a", "the group (?i)"},        {"\\xFF", "the escape \\xFF"},
      {"[]a]", "begins with ]"},    {"\\h", "the escape \\h"},     {"\\p{^L}", "the property \\p{^L"}, {"a\\", "a backslash"},
      {"a*", "empty text"},         {"(a", "is invalid"},          {"\\p{Nothing}", "is invalid"},     {"[a", "a class without its end"}};
  for (const char* verb : {"FAIL",   "F",           "ACCEPT",   "COMMIT",       "PRUNE",  "SKIP",         "THEN",
                           "MARK:x", ":x",          "UCP",      "UTF",          "NO_JIT", "LIMIT_HEAP=1", "LIMIT_MATCH=1",
                           "CRLF",   "BSR_ANYCRLF", "NOTEMPTY", "NO_START_OPT", "pla:a",  "sr:a",         "x"})
    for (const char* before : {"", "a|", "(?:a)|b"})
      EXPECT_TRUE(has(refusal(format("{}(*{})a", before, verb)), "the verb (*"))
          << verb << ": " << refusal(format("{}(*{})a", before, verb));
  EXPECT_EQ(matches("[(*]+", "a(*b"), Texts{"(*"});
  EXPECT_EQ(matches("\\(\\*", "a(*b"), Texts{"(*"});
  for (const auto& [pattern, part] : table) {
    EXPECT_TRUE(has(refusal(pattern), part)) << pattern << ": " << refusal(pattern);
    EXPECT_TRUE(has(refusal(pattern), "tokenizer.json: pattern.Regex")) << pattern;
  }
  EXPECT_TRUE(has(refusal(std::string(20000, 'a')), "at most 16384 bytes"));
}

TEST(Regex, LiteralsMatchThemselves) {
  for (const std::string literal : {" ", ".", "a+b", "[x]", "\\d", "\u2581", "(?:", "{2}", "a\nb", "^$|#"}) {
    const Regex regex = Regex::of_literal(literal, "file", "pattern");
    Regex::Scratch scratch;
    Match match;
    ASSERT_TRUE(regex.find("zz" + literal + "zz", 0, scratch, match)) << literal;
    EXPECT_EQ(match.begin, 2u) << literal;
    EXPECT_EQ(match.end, 2 + literal.size()) << literal;
  }
}

TEST(Regex, APatternThatBacktracksWithoutEndStops) {
  const Regex regex("(?:(?:a+)+)+b", "tokenizer.json", "pattern.Regex");
  const std::string text = std::string(60, 'a').append("cb");
  Regex::Scratch scratch;
  Match match;
  EXPECT_TRUE(has(error_of<DataError>([&] { regex.find(text, 0, scratch, match); }), "needs too much work"));
}

TEST(Regex, LongRunsOfOneCharacterAreOneMatch) {
  for (const std::string one : {"a", " ", "\n", "-", "\u4e2d"}) {
    std::string text;
    while (text.size() < 3'000'000) text += one;
    const auto found = matches(std::string(default_pattern), text);
    ASSERT_EQ(found.size(), 1u) << one;
    EXPECT_EQ(found[0].size(), text.size());
  }
}

}  // namespace
}  // namespace octet::tokenizer
