#include "octet/config/toml_guard.hpp"

#include <gtest/gtest.h>

#include <random>

#include "octet/config/read.hpp"
#include "octet/config/sample.test.hpp"

namespace octet::config {
namespace {

std::string refused(std::string_view text) {
  return refusal_of([&] { guard_toml(text, "x.toml"); });
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(TomlGuard, DeepNestingIsRefusedAtTheLevelThatIsTooDeep) {
  const std::string too_deep = "more than 16 levels deep; no configuration needs that", dotted = repeated("a .", 10'000);
  EXPECT_EQ(refused("a = 1\nb = " + repeated("[", 10'000)), "x.toml:2:21: " + too_deep);
  EXPECT_EQ(refused("b = " + repeated("{a=", 10'000)), "x.toml:1:53: " + too_deep);
  EXPECT_EQ(refused("b = " + repeated("[{a=", 10'000)), "x.toml:1:37: " + too_deep);
  EXPECT_EQ(refused(repeated("a.", 10'000) + "b = 1"), "x.toml:1:34: " + too_deep);
  EXPECT_EQ(refused("[" + dotted + "b]"), "x.toml:1:52: " + too_deep);
  EXPECT_EQ(refused(repeated("\"a\".", 10'000) + "b = 1"), "x.toml:1:68: " + too_deep);
  EXPECT_EQ(refused("b = \"\"\"\"\"\"" + repeated("[", 17)), "x.toml:1:27: " + too_deep);
}

TEST(TomlGuard, SixteenLevelsAndBracketsInsideStringsAndCommentsPass) {
  const std::string many = repeated("[", 100) + repeated("a.", 100);
  for (const auto& text : {"a = " + repeated("[", 16) + repeated("]", 16), "# " + many, "a = '" + many + "'", "a = \"\\\"" + many + "\"",
                           "a = '''\n'" + many + "''''\n", "a = \"\"\"\\\"\"\" " + many + "\"\"\"\"\"", repeated("a = 1.5\n", 100),
                           "a = [" + repeated("1.5, ", 100) + "]", repeated("a.", 16) + "b = 1"}) {
    EXPECT_EQ(refused(text), "no ConfigError") << text;
  }
}

TEST(TomlGuard, TextThatIsNotPlainUtf8IsRefused) {
  EXPECT_EQ(refused("\xEF\xBB\xBFsteps = 1"), "x.toml: begins with a byte-order mark; save it as UTF-8 without one");
  EXPECT_EQ(refused("\xFF\xFEs\0"), "x.toml: is UTF-16 or UTF-32 text; save it as UTF-8");
  EXPECT_EQ(refused(std::string("s\0t\0", 4)), "x.toml: is UTF-16 or UTF-32 text; save it as UTF-8");
  EXPECT_EQ(refused(std::string("\0s\0t", 4)), "x.toml: is UTF-16 or UTF-32 text; save it as UTF-8");
  EXPECT_EQ(refused("a = 1\n# ü \xE4 latin"), "x.toml:2:5: byte 228 is not UTF-8; save the file as UTF-8");
}

TEST(TomlGuard, CharactersBeyondAsciiMayStandOnlyInStringsAndComments) {
  EXPECT_EQ(refused("a = 'ü' # ü\nü = 1"), "x.toml:2:1: 'ü' may occur only in quotes and in comments");
  EXPECT_EQ(refused("a = \"\\\"ü\" €"), "x.toml:1:11: '€' may occur only in quotes and in comments");
}

TEST(TomlGuard, CharactersOfPlane16AreRefusedHoweverTheyAreWritten) {
  const std::string sentence = "a character for private use, from U+100000 on; write another";
  EXPECT_EQ(refused("a = 'ü'\nb = '\xF4\x80\x80\x80'"), "x.toml:2:6: " + sentence);
  EXPECT_EQ(refused("a = \"\\U00100041\""), "x.toml:1:6: " + sentence);
  EXPECT_EQ(refused("a = \"\\U0001F600 \xF3\xB0\x80\x80\""), "no ConfigError");
}

TEST(TomlGuard, ATextOverTheLimitIsRefused) {
  EXPECT_EQ(refused(std::string(max_toml_bytes, '\n')), "no ConfigError");
  EXPECT_EQ(refused(std::string(max_toml_bytes + 1, '\n')), "x.toml: a configuration may have at most 1,048,576 bytes, this has 1,048,577");
}

/// Byte salad, and valid text with bytes changed: any answer will do but a crash or another kind of error.
TEST(TomlGuard, RandomTextNeverEndsTheProgram) {
  const std::string alphabet = "[]{}=.,\"'\\\n\r\t #abst01-+_:TZ\xC3\xA4\x01";
  const std::string seed = "steps = 5\n[optim]\nschedule = {kind = \"linear\", warmup = 1}\nbeta2 = 0.5\n# end\n";
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 ? seed : std::string();
    for (int j = 0; j < 1 + i % 40; ++j) {
      const char c = alphabet[random() % alphabet.size()];
      if (text.empty() || random() % 2) text.insert(random() % (text.size() + 1), 1, c);
      else text[random() % text.size()] = c;
    }
    Sample sample;
    try {
      read_toml(text, "random", sample);
      ++accepted;
    } catch (const ConfigError&) {
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 10'000);
}

}  // namespace
}  // namespace octet::config
