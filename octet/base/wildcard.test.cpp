#include "octet/base/wildcard.hpp"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace octet {
namespace {

TEST(Wildcard, StarsAndQuestionMarksMatch) {
  EXPECT_TRUE(wildcard_match("layers.*.mlp.*", "layers.11.mlp.down"));
  EXPECT_TRUE(wildcard_match("layers.?.attn.qkv", "layers.3.attn.qkv"));
  EXPECT_FALSE(wildcard_match("layers.?.attn.qkv", "layers.13.attn.qkv"));
  EXPECT_TRUE(wildcard_match("*", ""));
  EXPECT_FALSE(wildcard_match("", "x"));
}

TEST(Wildcard, AgreesWithTheSystem) {
  for (const char* pattern :
       {"",     "a",  "*", "?",      "a*",  "*a",  "a?c",   "[abc]", "[!abc]", "[^a]x", "[a-c]*", "[]]",        "[]-a]",
        "[!]]", "[a", "[", "a[b-]c", "\\*", "\\a", "a\\?b", "[a-]",  "**a**",  "*.txt", "?*?",    "[a-c][x-z]", "*[0-9]"})
    for (const char* text :
         {"", "a", "b", "]", "-", "[", "[a", "ab", "ac", "abc", "a*b", "*", "a?b", "x.txt", "ax", "bz", "file9", "9", "a-c", "abbc", "!"})
      EXPECT_EQ(wildcard_match(pattern, text), ::fnmatch(pattern, text, 0) == 0) << pattern << " and " << text;
}

TEST(Wildcard, AStarMatchHasNoSetsAndNoBackslashes) {
  EXPECT_TRUE(star_match("layers.*.mlp.?p", "layers.11.mlp.up"));
  EXPECT_FALSE(star_match("layers.[0].mlp.up", "layers.0.mlp.up"));
  EXPECT_TRUE(star_match("layers.[0].*", "layers.[0].mlp.up"));
  EXPECT_FALSE(star_match("\\*", "*"));
  EXPECT_TRUE(star_match("\\*", "\\a"));
}

TEST(Wildcard, ManyStarsCostNoMoreThanTheProductOfTheLengths) {
  std::string pattern, text(4000, 'a');
  for (int i = 0; i < 400; ++i) pattern += "*a";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(wildcard_match(pattern + "b", text));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace octet
